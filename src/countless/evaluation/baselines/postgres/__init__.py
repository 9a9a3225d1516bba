"""A baseline: the row estimates of a real PostgreSQL planner, on a temporary server."""
