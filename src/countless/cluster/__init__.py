"""Fitting on an existing Ray cluster; only this package imports Ray, and only when a cluster is requested."""
