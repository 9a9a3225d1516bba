"""SQL that users wrote, run by DuckDB in processes with limits of time and memory."""
