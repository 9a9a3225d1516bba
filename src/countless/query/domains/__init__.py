"""Predicates on the distinct values of one column: by binary search where that is possible, else by DuckDB."""
