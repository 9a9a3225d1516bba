"""Thinning keeps every expectation, and keeps heavy masses as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.engine.columns.thinning import inclusion_probabilities, thin

MASSES = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=60)


@given(MASSES, st.integers(1, 60))
def test_inclusion_probabilities_add_up(masses: list[float], keep: int) -> None:
    if keep >= len(masses):
        return
    inclusion = inclusion_probabilities(np.array(masses), keep)
    assert np.all((inclusion > 0) & (inclusion <= 1))
    assert inclusion.sum() == pytest.approx(keep, rel=1e-6)


@given(MASSES, st.integers(1, 60), st.sampled_from([0.5, 0.75, 1.0]), st.floats(0, 1, exclude_max=True))
def test_about_as_many_as_asked_and_the_heavy_ones_whole(
    masses: list[float], keep: int, power: float, offset: float
) -> None:
    values = np.array(masses)
    chosen, weights = thin(values, keep, offset, power)
    assert len(set(chosen.tolist())) == len(chosen) <= keep + 1
    assert len(chosen) >= min(keep - 1, len(masses))
    assert np.all(weights >= values[chosen] * (1 - 1e-9))
    if len(masses) > keep:
        certain = np.flatnonzero(inclusion_probabilities(values**power, keep) == 1.0)
        assert set(certain.tolist()) <= set(chosen.tolist())


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
def test_every_mass_keeps_its_mean(power: float) -> None:
    values = np.random.default_rng(1).gamma(0.2, size=30) + 1e-6
    total = np.zeros(30)
    runs = 20_000
    for seed in range(runs):
        chosen, weights = thin(values, 7, np.random.default_rng(seed).random(), power)
        total[chosen] += weights
    inclusion = inclusion_probabilities(values**power, 7)
    deviation = values * np.sqrt((1 / inclusion - 1) / runs)
    assert np.all(np.abs(total / runs - values) <= 5 * deviation + 1e-9 * values)
