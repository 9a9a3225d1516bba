"""Error bars: what the nearest queries tell, and the interval around an estimate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.errors import ModelFileError
from countless.estimator.answers.estimate import q_error
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape, interval
from countless.estimator.estimator import Estimator
from countless.query.compile import Compiler


@given(st.floats(0, 1e6), st.integers(1, 1_000_000), st.floats(1, 1e4), st.integers(0, 1_000_000))
def test_the_interval_holds_exactly_the_truths_within_the_factor(
    rows: float, total: int, factor: float, truth: int
) -> None:
    rows, truth = min(rows, total), min(truth, total)
    low, high = interval(rows, total, (1 / factor, factor))
    assert 0 <= low <= rows <= high <= total
    error = q_error(rows, truth)
    if error < factor * (1 - 1e-9):
        assert low <= truth <= high
    if error > factor * (1 + 1e-9):
        assert not low <= truth <= high


def shaped(rng: np.random.Generator, count: int) -> tuple[CalibrationQuery, ...]:
    """Questions whose errors grow with their filters, and as their estimates fall."""
    queries = []
    for _ in range(count):
        filters, estimate = int(rng.integers(1, 17)), float(10 ** rng.uniform(0.5, 5))
        spread = 0.02 * filters + 0.5 / np.log(estimate + 2)
        truth = max(1, round(estimate * np.exp(rng.normal(0.1, spread))))
        queries.append(CalibrationQuery("x", truth, estimate, Shape(filters, filters // 2, bool(rng.integers(2)))))
    return tuple(queries)


def inside(calibration: Calibration, query: CalibrationQuery) -> bool:
    low, high = interval(query.estimate, 10**9, calibration.factors(query.estimate, query.shape))
    return low <= query.rows <= high


def test_coverage_holds_in_every_corner_and_bars_are_as_wide_as_need_be() -> None:
    rng = np.random.default_rng(0)
    calibration = Calibration(shaped(rng, 2_000))
    fresh = shaped(rng, 4_000)
    for corner in (
        [q for q in fresh if q.shape.filters <= 3],
        [q for q in fresh if q.shape.filters >= 13],
        [q for q in fresh if q.estimate < 30],
        [q for q in fresh if q.estimate > 10_000],
    ):
        assert 0.88 < np.mean([inside(calibration, query) for query in corner]) < 0.975
    rare, broad = Shape(16, 8), Shape(1)
    (low, high), (near_low, near_high) = calibration.factors(10.0, rare), calibration.factors(50_000.0, broad)
    assert high / low > 2 * near_high / near_low
    # It errs to one side, and so does the bar.
    assert np.sqrt(near_high * near_low) == pytest.approx(np.exp(0.1), rel=0.05)


def test_the_shape_of_a_question(estimator: Estimator) -> None:
    compiler = Compiler(estimator.schema)

    def shape(where: str) -> Shape:
        return Shape.of(compiler.compile(where).region)

    assert shape("TRUE") == shape("FALSE") == Shape()
    assert shape("age = 30 AND city IN ('Oslo', 'Rome') AND married") == Shape(3, 2)
    assert shape("age > 0") == Shape()  # all of them
    assert shape("age BETWEEN 30 AND 30") == Shape(1, 1)
    assert shape("age = 30 AND score > 1 OR city = 'Rome'").union
    assert not shape("age = 30 OR age > 50").union


@pytest.mark.parametrize("count", [0, 1, 5, 18])
def test_too_few_queries_make_no_bar(count: int) -> None:
    assert Calibration(shaped(np.random.default_rng(1), count)).factors(10.0, Shape(2)) == (0.0, math.inf)


@pytest.mark.parametrize(("rows", "total"), [(0.0, 100), (1e-9, 5), (100.0, 100), (1.0, 1)])
def test_nothing_and_everything_have_sensible_bars(rows: float, total: int) -> None:
    calibration = Calibration(shaped(np.random.default_rng(2), 500))
    for factors in (calibration.factors(rows, Shape(1)), (0.0, math.inf)):
        low, high = interval(rows, total, factors)
        assert 0 <= low <= rows <= high <= total
        assert high >= 1


def test_round_trip() -> None:
    calibration = Calibration(shaped(np.random.default_rng(3), 2), level=0.8)
    assert Calibration.from_json(calibration.to_json()) == calibration


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        {"level": 2, "queries": []},
        {"level": 0.9, "queries": [{"where": "x", "rows": 1, "estimate": math.inf}]},
        {"level": 0.9, "queries": [7]},
        {"level": 0.9, "where": ["x"], "rows": [1], "estimates": [1.0], "filters": [-1], "single": [0], "union": [0]},
        {
            "level": 0.9,
            "where": ["x"],
            "rows": [1],
            "estimates": [1.0],
            "filters": [1],
            "single": ["much"],
            "union": [0],
        },
        {"level": 0.9, "where": ["x"], "rows": [1, 2], "estimates": [1.0], "filters": [1], "single": [0], "union": [0]},
        {"level": 0.9, "where": ["x"], "rows": [1]},
    ],
)
def test_damaged(data: object) -> None:
    with pytest.raises(ModelFileError, match="is damaged"):
        Calibration.from_json(data)


def test_a_kind_that_was_never_asked_has_the_widest_bar() -> None:
    queries = shaped(np.random.default_rng(1), 300)
    calibration = Calibration(queries)
    known, unknown = Shape(3, 1, union=True), Shape(3, 1, vague=True)
    assert calibration.knows(known)
    assert not calibration.knows(unknown)
    assert calibration.factors(50.0, unknown) == (0.0, np.inf)
    low, high = np.quantile(calibration.errors(50.0, unknown), (0.05, 0.95))
    scores = [np.log(max(query.rows, 1) / query.estimate) for query in queries]
    assert low < np.quantile(scores, 0.05)
    assert high > np.quantile(scores, 0.95)
    some = tuple(replace(query, shape=unknown) for query in queries[:5])
    assert Calibration((*queries, *some)).knows(unknown)
