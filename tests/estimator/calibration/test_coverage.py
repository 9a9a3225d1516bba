"""What is told of error bars: that of default answers, on the calibration questions themselves."""

from __future__ import annotations

import numpy as np
import pytest

from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape
from countless.estimator.calibration.coverage import describe_intervals


def test_a_query_is_judged_by_the_others() -> None:
    """Of 50 queries that lie together, the bar leaves out 4% of the others, which are two, at either end."""
    spread = [CalibrationQuery("x", 100 + index, 150.0, Shape(2)) for index in range(50)]
    interval = describe_intervals(Calibration(tuple(spread)), 1000, None)
    assert interval["coverage"] == 48 / 50  # the estimate is above all truths, and the bar holds it
    assert interval["width"] == {
        "0-1": None,
        "1-10": None,
        "10-100": None,
        "100-1000": pytest.approx(150 / 101),
        "1000+": None,
    }
    assert describe_intervals(Calibration(()), 1000, None)["coverage"] is None


def test_evidence_rows_narrow_the_bars_that_are_told() -> None:
    """A model that is useless, beside a sample of a tenth of the table: the sample decides."""
    random = np.random.default_rng(0)
    truths = random.integers(1_000, 50_000, 200).tolist()
    queries = tuple(
        CalibrationQuery(
            "x", rows, rows * float(np.exp(random.normal(0, 3))), Shape(2), int(random.binomial(rows, 0.1))
        )
        for rows in truths
    )
    alone, fused = (describe_intervals(Calibration(queries), 100_000, rows) for rows in (None, 10_000))
    assert alone["width"]["1000+"] > 50
    assert fused["width"]["1000+"] < 1.3
    assert fused["coverage"] > 0.8
    assert describe_intervals(Calibration(queries), 10_000, 10_000)["coverage"] == 1.0
