"""How latency, training, memory and file size grow with the table and the question, on generated tables."""
