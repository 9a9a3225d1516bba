"""Updates of a model with new rows, and checks for drift."""
