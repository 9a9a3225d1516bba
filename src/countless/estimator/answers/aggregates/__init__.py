"""Aggregates of groups: counts, sums, means and quantiles, with error bars."""
