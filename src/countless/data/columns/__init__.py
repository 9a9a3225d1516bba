"""Columns: types, domains, grids, alphabets, digits, and the schema of a table."""
