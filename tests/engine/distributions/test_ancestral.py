"""Rows drawn position by position come as often as the model says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from countless.cancellation import ComputationCancelledError, cancellable
from countless.engine.columns.runtime import softmax
from countless.engine.distributions.ancestral import ancestral_rows
from tests.mocks import PrefixRuntime

SIZES = (3, 2, 4)


def joint(model: PrefixRuntime) -> np.ndarray:
    """The probability of every row."""
    rows = np.array(list(itertools.product(*map(range, SIZES))))
    chances = [
        softmax(model.conditional(rows, position))[np.arange(len(rows)), rows[:, position]] for position in range(3)
    ]
    return np.asarray(np.prod(chances, axis=0))


@pytest.mark.parametrize("orders", [[(0, 1, 2)], [(2, 0, 1), (1, 2, 0)]])
def test_rows_come_as_often_as_the_model_says(orders: list[tuple[int, ...]]) -> None:
    models = [PrefixRuntime(SIZES, seed, order) for seed, order in enumerate(orders)]
    count = 2_048 * 2
    rows = ancestral_rows(models, count, np.random.default_rng(0))
    shares = np.bincount(np.ravel_multi_index(tuple(rows.T), SIZES), minlength=24) / count
    mean = np.mean([joint(model) for model in models], axis=0)
    assert np.abs(shares - mean).max() < 5 * np.sqrt(mean.max() / count)
    assert np.array_equal(rows, ancestral_rows(models, count, np.random.default_rng(0)))


def test_no_rows_at_all() -> None:
    assert ancestral_rows([PrefixRuntime(SIZES, 0)], 0, np.random.default_rng(0)).shape == (0, 3)


def test_drawing_stops_in_its_threads_when_nobody_waits() -> None:
    with cancellable(lambda: False), pytest.raises(ComputationCancelledError):
        ancestral_rows([PrefixRuntime(SIZES, 0)], 10, np.random.default_rng(0))
