"""The commands ``countless bench`` and ``countless paper``."""
