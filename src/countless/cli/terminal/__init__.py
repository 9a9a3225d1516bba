"""What commands show on a terminal: messages, progress, result tables."""
