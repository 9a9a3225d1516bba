"""What follows from the options for one network: epochs, batch and learning rate."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from countless.errors import OptionError
from countless.options import TrainingOptions
from countless.train.options import TrainOptions


@pytest.mark.parametrize("schedule", ["stable", "cosine"])
def test_the_learning_rate_climbs_then_falls_to_zero(schedule: str) -> None:
    options = TrainOptions(learning_rate=1.0, warmup=0.1, schedule=schedule)
    rates = [options.learning_rate_at(index / 100) for index in range(101)]
    assert rates[0] < rates[5] < rates[10] == max(rates)
    assert all(later <= earlier for earlier, later in pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)


def test_schedules() -> None:
    """Stable: at the peak, then along a line over the last 60%. Cosine: falling from the start."""
    fractions = (0.03, 0.2, 0.4, 0.7, 1.0)
    stable = TrainOptions(learning_rate=1.0)
    assert [stable.learning_rate_at(fraction) for fraction in fractions] == pytest.approx([1, 1, 1, 0.5, 0])
    cosine = TrainOptions(learning_rate=1.0, schedule="cosine")
    assert [cosine.learning_rate_at(fraction) for fraction in fractions] == pytest.approx(
        [0.5 + 0.5 * math.cos(math.pi * fraction) for fraction in fractions]
    )


def test_a_long_run_has_a_lower_learning_rate() -> None:
    """By the root of its length, but not less than a quarter; a rate that is given holds for any length."""
    usual = TrainOptions.of(TrainingOptions(), 1.0, None, hot_steps=100)
    assert [usual.learning_rate_at(0.2, steps) for steps in (0, 100, 400, 10**6)] == pytest.approx([1, 1, 0.5, 0.25])
    given = TrainOptions.of(TrainingOptions(learning_rate=1.0), 0.1, None, hot_steps=100)
    assert given.learning_rate_at(0.2, 400) == 1.0


def test_defaults_by_size() -> None:
    options = TrainOptions()
    assert options.epochs_for(10_000_000) == 20
    assert options.epochs_for(100) == 100
    assert options.batch_for(1_000_000) == 256
    assert options.batch_for(100) == 128
    assert TrainOptions(budget=5.0).epochs_for(100) is None
    assert TrainOptions(epochs=3, batch=7).epochs_for(100) == 3
    assert TrainOptions(share=5.0).epochs_for(100) == 100  # of a budget that nobody asked for
    assert TrainOptions(budget=9.0, share=5.0).seconds == 5.0
    assert TrainOptions(budget=9.0).seconds == 9.0
    assert TrainOptions(epochs=5).seconds is None
    assert TrainOptions(epochs=3, batch=7).batch_for(100) == 7


def test_options_of_one_network() -> None:
    fit = TrainingOptions(epochs=2, smooth=0.5, workload=["a > 1"])
    assert TrainOptions.of(fit, 0.003, 9.0) == TrainOptions(epochs=2, smooth=0.5, learning_rate=0.003, share=9.0)
    assert TrainOptions.of(TrainingOptions(learning_rate=0.1), 0.003, None).learning_rate == 0.1
    assert "workload" not in TrainOptions.of(fit, 0.003, None).to_json()
    with pytest.raises(OptionError, match="share must be more than 0, not 0"):
        TrainOptions(share=0.0)
