"""Text columns: alphabet, characters, and numbers for distinct strings."""
