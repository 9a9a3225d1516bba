"""What exact counts and text add to the walk of the columns."""
