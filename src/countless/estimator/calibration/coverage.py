"""How often error bars hold, and how wide they are, on the calibration questions themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from countless.estimator.calibration.bands import PREDICTED, band
from countless.estimator.calibration.conformal import Calibration, width
from countless.estimator.calibration.posterior import left_out_posteriors


def describe_intervals(calibration: Calibration, total: int, evidence_rows: int | None) -> dict[str, Any]:
    """The level of the error bars, and how good they are: each calibration question is judged by the others.

    These are the error bars of default answers about a table of ``total`` rows, of which ``evidence_rows`` are stored;
    None if no rows are stored. ``coverage`` is the share of questions whose true count is within the bar. ``width`` is
    the median factor between the ends of a bar (both at least one row), by predicted rows.
    """
    bars = calibration.left_out_bars(total) if evidence_rows is None else _fused_bars(calibration, total, evidence_rows)
    inside = []
    widths: dict[str, list[float]] = {name: [] for name in PREDICTED}
    for query, (estimate, low, high) in zip(calibration.queries, bars, strict=True):
        inside.append(low <= query.rows <= high)
        widths[band(PREDICTED, estimate)].append(width(low, high))
    return {
        "level": calibration.level,
        "queries": len(inside),
        "coverage": float(np.mean(inside)) if inside else None,
        "width": {name: float(np.median(factors)) if factors else None for name, factors in widths.items()},
    }


def _fused_bars(calibration: Calibration, total: int, evidence_rows: int) -> Iterator[tuple[float, ...]]:
    """For each calibration question, the estimate and the ends of the error bar from evidence rows and the model."""
    if evidence_rows >= total:  # answers are exact
        yield from ((float(query.rows),) * 3 for query in calibration.queries)
        return
    tail = calibration.tail
    for posterior in left_out_posteriors(calibration, evidence_rows, total):
        estimate, low, high = posterior.quantiles((0.5, tail, 1.0 - tail))
        yield estimate, np.floor(low), np.ceil(high)
