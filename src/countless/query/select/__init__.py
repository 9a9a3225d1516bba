"""SELECT statements with aggregates: the part that the model answers, and the part that DuckDB computes."""
