"""Contests on one table: methods for text, fits with and without a workload, a service under load."""
