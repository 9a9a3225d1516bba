"""Training tasks: what the loop trains, for columns and for text."""
