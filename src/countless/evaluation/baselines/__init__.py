"""What a user would do instead, behind the same ``estimate()``."""
