"""Experiments as jobs in processes of their own, and the folder that keeps their results."""
