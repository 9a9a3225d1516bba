"""The sandbox: DuckDB evaluates users' SQL in processes with limits of time and memory."""
