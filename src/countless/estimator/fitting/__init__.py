"""From a table to an estimator: the steps of a fit, and where they run."""
