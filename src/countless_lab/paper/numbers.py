"""Statistics of a cell's q-errors: quantiles, means over orders, bootstrap deviations; and their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.human_format import number

METRICS = {"p50": 50.0, "p99": 99.0, "max": 100.0}
RESAMPLES = 1_000
BOOTSTRAP_SEED = 0

Record = dict[str, Any]


def quantiles(errors: Sequence[float]) -> dict[str, float]:
    """The median, the 99th percentile and the largest.

    >>> quantiles([1.0, 2.0, 3.0])
    {'p50': 2.0, 'p99': 2.98, 'max': 3.0}
    """
    return {name: _rounded(float(np.percentile(errors, percentile))) for name, percentile in METRICS.items()}


def summarized(answers: Record) -> dict[str, float]:
    """The result of an AnswerSet cell in five figures: its q-errors, its median time, and its work per query."""
    return {
        **quantiles(answers["q_errors"]),
        "ms": _rounded(float(np.median(answers["ms"]))),
        "forward_rows": _rounded(float(answers["forward_rows"])),
    }


def over_orders(summaries: Sequence[dict[str, float]]) -> Record:
    """Of every figure the mean over orders, and the sample deviation if there are several."""
    return {name: mean_and_deviation([summary[name] for summary in summaries]) for name in summaries[0]}


def mean_and_deviation(values: Sequence[float]) -> Record:
    """Mean, sample deviation (None of a single value), and the values.

    >>> mean_and_deviation([1.0, 3.0])
    {'mean': 2.0, 'deviation': 1.41421, 'values': [1.0, 3.0]}
    >>> mean_and_deviation([5.0])
    {'mean': 5.0, 'deviation': None, 'values': [5.0]}
    """
    deviation = _rounded(float(np.std(values, ddof=1))) if len(values) > 1 else None
    return {"mean": _rounded(float(np.mean(values))), "deviation": deviation, "values": list(values)}


def bootstrapped(errors: Sequence[float]) -> dict[str, Record]:
    """The quantiles, each with its deviation over resampled queries."""
    drawn = np.random.default_rng(BOOTSTRAP_SEED).choice(np.asarray(errors), (RESAMPLES, len(errors)))
    means = quantiles(errors)
    return {
        name: {"mean": means[name], "deviation": _rounded(float(np.std(np.percentile(drawn, percentile, axis=1))))}
        for name, percentile in METRICS.items()
    }


def written(figure: Record | None) -> str:
    """A mean with its deviation.

    >>> written({"mean": 1150.0, "deviation": 550.0}), written({"mean": 2.0, "deviation": None}), written(None)
    ('1,150 ± 550', '2.00', '')
    """
    if figure is None:
        return ""
    deviation = figure.get("deviation")
    return number(figure["mean"]) if deviation is None else f"{number(figure['mean'])} ± {number(deviation)}"


def _rounded(value: float) -> float:
    """Six significant digits: more would be noise, and make files differ."""
    return float(f"{value:.6g}")
