"""A SELECT with aggregates: what the model is asked, and what DuckDB makes of the answers."""
