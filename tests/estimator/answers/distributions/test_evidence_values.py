"""Combinations of codes are counted the same whether each has a place or those that occur are sorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countless.engine.distributions import joint
from countless.estimator.answers.distributions import evidence_values
from countless.estimator.answers.distributions.evidence_values import merged, tally

MOST = joint.MOST_LISTED


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_listed_combinations_are_those_that_are_sorted(
    monkeypatch: pytest.MonkeyPatch, seed: int, sizes: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    rows, others = ([rng.integers(0, size, count) for size in sizes] for count in rng.integers(0, 40, 2))
    masses = rng.random(len(rows[0])) * (rng.random(len(rows[0])) < 0.8)
    axes = [joint.Axis(index, (index,), (size,), size) for index, size in enumerate(sizes)]
    names = np.ravel_multi_index(tuple(rows), tuple(sizes))
    combinations = []
    for most in (MOST, 0):
        monkeypatch.setattr(joint, "MOST_LISTED", most)
        monkeypatch.setattr(evidence_values, "MOST_LISTED", most)
        one, two = tally(rows, sizes), tally(others, sizes)
        spread = joint.summed([(names, masses, True, False)], axes)
        combinations.append(
            [*one, *merged(one[0], one[1].astype(np.float64), *two, sizes), spread.codes, spread.masses]
        )
    for listed, sorted_ones in zip(*combinations, strict=True):
        assert np.array_equal(listed, sorted_ones)
        assert listed.dtype == sorted_ones.dtype
