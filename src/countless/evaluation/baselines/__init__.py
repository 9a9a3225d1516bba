"""Baselines: other ways to estimate row counts, with the same ``estimate()`` method."""
