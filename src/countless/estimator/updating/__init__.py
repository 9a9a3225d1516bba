"""Models of tables that change: updates with new rows, and checks for drift."""
