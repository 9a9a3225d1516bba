"""When a model is worth it: a large table and parts of it, counted by a model, exactly, by a scan and by samples."""
