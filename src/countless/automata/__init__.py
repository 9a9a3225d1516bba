"""Sets of strings: automata over the letters of a text column, and their algebra."""
