"""Where rows come from: files, frames, DuckDB and PostgreSQL, read as batches of rows."""
