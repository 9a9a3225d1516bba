"""Clauses on text columns: comparisons, LIKE and regular expressions as automata."""
