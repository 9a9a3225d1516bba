"""The posterior of a count: hypergeometric hits, the model as a prior, and error bars that hold."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.engine.columns.kernel import compiled
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape
from countless.estimator.calibration.posterior import (
    TAILS,
    SampleCount,
    is_enough,
    log_factorial,
    posterior,
    posterior_by_numpy,
    with_tail,
)


def test_log_factorial() -> None:
    numbers = np.array([0.0, 0.25, 1.0, 2.5, 7.0, 8.0, 30.0, 1e3, 1e6])
    expected = [math.lgamma(number + 1) for number in numbers]
    np.testing.assert_allclose(log_factorial(numbers), expected, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize(("total", "rows"), [(20, 8), (50, 5), (30, 29)])
def test_likelihood_is_hypergeometric(total: int, rows: int) -> None:
    for hits in range(min(rows, 6) + 1):
        counts = np.arange(total + 1, dtype=np.float64)
        ways = [comb(count, hits) * comb(total - count, rows - hits) for count in range(total + 1)]
        likelihoods = np.exp(SampleCount(hits, rows, total).log_likelihood(counts))
        np.testing.assert_allclose(likelihoods, ways, rtol=1e-6)


def test_many_hits_decide_and_no_hits_leave_it_to_the_model() -> None:
    errors = np.random.default_rng(0).normal(0.0, 0.3, 90)
    many = posterior(SampleCount(400, 30_000, 300_000), 300.0, errors, 0.0, 300_000.0)
    assert many.quantile(0.5) == pytest.approx(4_000, rel=0.1)
    none = posterior(SampleCount(0, 30_000, 300_000), 3.0, errors, 0.0, 300_000.0)
    assert none.quantile(0.5) == pytest.approx(3.0, rel=0.25)
    both = posterior(SampleCount(5, 30_000, 300_000), 40.0, errors, 0.0, 300_000.0)
    assert 38 < both.quantile(0.5) < 50
    alone = posterior(SampleCount(5, 30_000, 300_000), None, None, 0.0, 300_000.0)
    assert both.quantile(0.95) / both.quantile(0.05) < alone.quantile(0.95) / alone.quantile(0.05)


def test_no_count_outside_of_what_is_certain() -> None:
    errors = np.zeros(80)
    weighed = posterior(SampleCount(7, 50, 100), 3.0, errors, 0.0, 100.0)
    assert weighed.quantile(0.0) >= 7 - 1e-9  # so many were seen
    assert posterior(SampleCount(0, 50, 100), 90.0, errors, 0.0, 100.0).quantile(1.0) <= 50
    bounded = posterior(SampleCount(2, 100, 10_000), 500.0, errors, 20.0, 60.0)
    assert 20 - 1e-9 <= bounded.quantile(0.0) <= bounded.quantile(1.0) <= 60 + 1e-9


@given(st.integers(0, 60), st.none() | st.floats(0.0, 5_000.0), st.floats(0.0, 1_000.0), st.floats(0.0, 1_000.0))
@settings(deadline=None)
def test_bounds_never_exclude_more_than_they_say(hits: int, answer: float | None, one: float, two: float) -> None:
    """What lies below an upper bound is as likely as before, or more; and the same above a lower bound."""
    sample, errors = SampleCount(hits, 500, 5_000), np.linspace(-0.5, 0.5, 80)
    least, most = min(one, two), max(one, two, float(hits))
    model_errors = None if answer is None else errors
    free, above, below = (
        posterior(sample, answer, model_errors, *bounds) for bounds in ((0.0, 5e3), (least, 5e3), (0.0, most))
    )
    assert below.quantile(0.05) <= max(free.quantile(0.05) * 1.1, 1.0)
    assert above.quantile(0.95) >= min(free.quantile(0.95), sample.bounds[1]) / 1.1
    between = posterior(sample, answer, model_errors, least, most)
    assert between.quantile(0.0) <= max(least, float(hits), 0.5) * 1.1 or free.quantile(0.0) > least


def test_tight_bounds_are_held_by_the_error_bar() -> None:
    """The few counts of the prior between two bounds are no error bar by themselves."""
    errors = np.random.default_rng(0).normal(0.0, 0.3, 90)
    for answer in (None, 900.0, 1_004.0, 1_500.0):
        model_errors = None if answer is None else errors
        weighed = posterior(SampleCount(105, 10_000, 100_000), answer, model_errors, 1_000.0, 1_010.0)
        assert weighed.quantile(0.05) < 1_001.5
        assert weighed.quantile(0.95) > 1_008.5


def test_no_hits_allow_for_rows_that_the_sample_missed() -> None:
    weighed = posterior(SampleCount(0, 1_000, 1_000_000), None, None, 0.0, 1e6)
    assert weighed.quantile(0.95) > 1_000


def questions(rng: np.random.Generator, count: int, spread: float) -> tuple[CalibrationQuery, ...]:
    """Of a table of 100,000 rows, of which 10,000 are evidence."""
    truths = np.exp(rng.uniform(0.0, 9.0, count)).round()
    answers = truths * np.exp(rng.normal(0.0, spread, count))
    hits = rng.binomial(truths.astype(int), 0.1)
    return tuple(
        CalibrationQuery("x", int(truth), float(answer), Shape(3), int(own))
        for truth, answer, own in zip(truths, answers, hits, strict=True)
    )


def test_error_bars_hold() -> None:
    rng = np.random.default_rng(3)
    calibration = with_tail(Calibration(questions(rng, 600, 0.4)), 10_000, 100_000)
    assert TAILS[0] <= calibration.tail <= TAILS[1]
    inside = []
    for query in questions(rng, 300, 0.4):
        hits = SampleCount(query.hits, 10_000, 100_000)
        needs_model = not is_enough(hits, query.shape, calibration)
        errors = calibration.errors(query.estimate, query.shape)
        weighed = posterior(hits, query.estimate if needs_model else None, errors, 0.0, 100_000.0)
        low, high = weighed.quantile(calibration.tail), weighed.quantile(1.0 - calibration.tail)
        inside.append((low if low > 1 else 0) <= query.rows <= max(high, 1.0))
    assert np.mean(inside) > 0.85


def test_the_model_is_asked_where_hits_are_few() -> None:
    good = Calibration(questions(np.random.default_rng(4), 400, 0.1))
    bad = Calibration(questions(np.random.default_rng(4), 400, 1.5))
    assert not is_enough(SampleCount(100, 10_000, 100_000), Shape(3), good)
    assert is_enough(SampleCount(100, 10_000, 100_000), Shape(3), bad)
    assert not is_enough(SampleCount(0, 10_000, 100_000), Shape(3), bad)
    assert is_enough(SampleCount(5_000, 10_000, 100_000), Shape(3), good)


def test_a_model_that_was_not_calibrated_has_a_wide_prior() -> None:
    errors = Calibration(()).errors(10.0, Shape(1))
    assert len(errors) > 20
    assert float(errors.std()) > 0.8


@pytest.mark.skipif(compiled() is None, reason="the compiled module was not built")
@given(
    st.integers(0, 60),
    st.sampled_from([0, 60, 1_000, 100_000]),
    st.sampled_from([100_000, 3_000_000, 10**8]),
    st.none() | st.floats(0.0, 1e6),
    st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=100),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
@settings(deadline=None, max_examples=300)
def test_the_compiled_posterior_is_its_twin(
    count: int, rows: int, total: int, answer: float | None, errors: list[float], one: float, two: float
) -> None:
    hits = SampleCount(min(count, rows if answer is not None else rows // 2), rows, total)
    low, high = hits.bounds
    least, most = sorted((low + (high - low) * one**8, low + (high - low) * two**8))
    arguments = hits, answer, np.array(errors), least, most
    found, defined = posterior(*arguments), posterior_by_numpy(*arguments)
    assert len(found.counts) == len(defined.counts)
    np.testing.assert_allclose(found.counts, defined.counts, rtol=1e-12)
    np.testing.assert_allclose(found.below, defined.below, rtol=1e-4, atol=1e-6)
