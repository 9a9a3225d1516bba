"""Error bars: the conformal quantile, and the interval around an estimate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.errors import ModelFileError
from countless.estimator.calibration import Calibration, CalibrationQuery, interval
from countless.estimator.estimate import q_error


def queries(errors: list[float]) -> tuple[CalibrationQuery, ...]:
    return tuple(CalibrationQuery("x", 100, 100 * error) for error in errors)


def test_the_factor_is_the_conformal_quantile() -> None:
    assert Calibration(queries([1.0 + k / 100 for k in range(99)])).factor == pytest.approx(1.89)  # the 90th of 99


def test_too_few_queries_say_nothing() -> None:
    assert Calibration(queries([1.1] * 5)).factor == math.inf
    assert Calibration(()).factor == math.inf


def test_coverage_on_fresh_errors() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        errors = np.exp(rng.normal(scale=0.5, size=600))
        factor = Calibration(queries(errors[:300].tolist())).factor
        covered.append(np.mean(np.maximum(errors[300:], 1 / errors[300:]) <= factor))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.01)


@given(st.floats(0, 1e6), st.integers(1, 1_000_000), st.floats(1, 1e4), st.integers(0, 1_000_000))
def test_the_interval_holds_exactly_the_truths_within_the_factor(
    rows: float, total: int, factor: float, truth: int
) -> None:
    rows, truth = min(rows, total), min(truth, total)
    low, high = interval(rows, total, factor)
    assert 0 <= low <= high <= total
    error = q_error(rows, truth)
    if error < factor * (1 - 1e-9):
        assert low <= truth <= high
    if error > factor * (1 + 1e-9):
        assert not low <= truth <= high


def test_round_trip() -> None:
    calibration = Calibration(queries([1.0, 2.0]), level=0.8)
    assert Calibration.from_json(calibration.to_json()) == calibration


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        {"level": 2, "queries": []},
        {"level": 0.9, "queries": [{"where": "x", "rows": 1, "estimate": math.inf}]},
    ],
)
def test_damaged(data: object) -> None:
    with pytest.raises(ModelFileError, match="calibration is damaged"):
        Calibration.from_json(data)
