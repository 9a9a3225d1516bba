"""What a column is: its type, its domain or grid or alphabet, its digits; and the schema of all columns."""
