"""Fitting: the steps from a table to an estimator, and the back ends that run them."""
