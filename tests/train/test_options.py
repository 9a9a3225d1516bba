"""Options check themselves, and defaults follow from the table's size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from countless.errors import TrainingError
from countless.train.options import TrainOptions


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"epochs": 0}, "--epochs"),
        ({"budget": 0.0}, "--budget"),
        ({"batch": 0}, "batch size"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"warmup": 1.0}, "warm-up"),
        ({"clip": 0.0}, "clipping"),
        ({"seed": -1}, "seed"),
        ({"held_out": 0.5}, "held-out"),
        ({"masking": "half"}, "unknown masking"),
    ],
)
def test_bad_options(options: dict[str, Any], phrase: str) -> None:
    with pytest.raises(TrainingError, match=phrase):
        TrainOptions(**options)


def test_the_learning_rate_climbs_then_falls_to_zero() -> None:
    options = TrainOptions(learning_rate=1.0, warmup=0.1)
    rates = [options.learning_rate_at(place / 100) for place in range(101)]
    assert rates[0] < rates[5] < rates[10] == max(rates)
    assert all(later <= earlier for earlier, later in pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)


def test_defaults_by_size() -> None:
    options = TrainOptions()
    assert options.epochs_for(10_000_000) == 20
    assert options.epochs_for(100) == 100
    assert options.batch_for(1_000_000) == 512
    assert options.batch_for(100) == 128
    assert TrainOptions(budget=5.0).epochs_for(100) is None
    assert TrainOptions(epochs=3, batch=7).epochs_for(100) == 3
    assert TrainOptions(share=5.0).epochs_for(100) == 100  # of a budget that nobody asked for
    assert TrainOptions(budget=9.0, share=5.0).seconds == 5.0
    assert TrainOptions(budget=9.0).seconds == 9.0
    assert TrainOptions(epochs=5).seconds is None
    assert TrainOptions(epochs=3, batch=7).batch_for(100) == 7


@pytest.mark.parametrize(("options", "phrase"), [({"clock": "sun"}, "clock"), ({"smooth": 2.0}, "smoothness")])
def test_options_of_experiments(options: dict[str, Any], phrase: str) -> None:
    with pytest.raises(TrainingError, match=phrase):
        TrainOptions(**options)


def test_options_by_name() -> None:
    assert TrainOptions(epochs=2).changed({"smooth": 0.5}) == TrainOptions(epochs=2, smooth=0.5)
    with pytest.raises(TrainingError, match="unknown training options: magic"):
        TrainOptions().changed({"magic": 1})
