"""The aggregate functions of a SELECT, by their names in DuckDB."""

from __future__ import annotations

# Every aggregate that a model answers: its names in DuckDB, and its name here.
AGGREGATES = {
    "count": "count",
    "count_star": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "median": "median",
    "quantile": "quantile_disc",
    "quantile_cont": "quantile_cont",
    "quantile_disc": "quantile_disc",
    "approx_quantile": "approx_quantile",
}
QUANTILES = frozenset({"median", "quantile_cont", "quantile_disc", "approx_quantile"})  # these accept times, too
KNOWN = "count, sum, avg, stddev, variance, median and quantile_cont"  # as errors list them
UNANSWERED = "count_if countif min max mode percentile_cont percentile_disc"  # refused later, with a hint
