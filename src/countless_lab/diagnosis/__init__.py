"""Pictures for ``countless diagnose``."""
