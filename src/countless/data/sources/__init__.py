"""Sources of rows: files, data frames, DuckDB and PostgreSQL, read as batches."""
