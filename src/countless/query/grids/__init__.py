"""Clauses on columns that are stored as a grid: ranges between cut points."""
