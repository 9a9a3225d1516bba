"""A real PostgreSQL, started for the purpose and gone afterwards, and what its planner expects."""
