"""Sets of strings as finite automata over the characters of a text column, and their set operations."""
