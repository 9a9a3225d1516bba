"""When a model pays: one large table and parts of it, asked by a model, by exact counts, by a scan and by samples."""
