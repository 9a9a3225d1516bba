"""A budget is what a user waits: every stage has its share, told by a clock that the tests turn."""

from __future__ import annotations

import pytest

from countless.estimator.fitting.time_budget import TimePlan


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("reading", [1.0, 60.0, 180.0])
@pytest.mark.parametrize("bits", [[20.0], [300.0], [20.0, 300.0], [20.0, 300.0, 80.0, 1.0]])
def test_all_stages_together_take_the_budget(reading: float, bits: list[float]) -> None:
    clock = Clock()
    plan = TimePlan(300.0, clock)
    clock.now += reading
    for index in range(len(bits) - 1):  # of text columns
        clock.now += plan.counting(len(bits) - 1 - index) or 0.0
    plan.start_training(texts=len(bits) > 1)
    assert not plan.extended
    for network in range(len(bits)):
        clock.now += plan.training(network, bits) or 0.0
    left = plan.left
    assert left is not None
    assert 0.05 * (300.0 - reading) < left < 0.16 * (300.0 - reading)  # for calibration
    clock.now += left
    assert 0.9 * 300.0 <= plan.spent <= 300.0


def test_what_a_stage_leaves_goes_to_the_next() -> None:
    clock = Clock()
    plan = TimePlan(100.0, clock)
    plan.start_training(texts=True)
    first, second = (plan.training(network, [50.0, 50.0]) for network in (0, 1))
    assert first is not None
    assert second is not None
    assert second == pytest.approx(2 * first)  # of nothing that the first has used
    clock.now += first
    assert plan.training(1, [50.0, 50.0]) == pytest.approx(first)


def test_who_has_more_to_learn_gets_more_time_but_not_all() -> None:
    plan = TimePlan(100.0, Clock())
    plan.start_training(texts=True)
    columns, text = 20.0, 300.0
    share, other = plan.training(0, [columns, text]), plan.training(0, [text, columns])
    assert share is not None
    assert other is not None
    assert 1 / 16 < share / (share + other) < 1 / 4


def test_training_has_a_third_of_the_budget_however_long_reading_took() -> None:
    clock = Clock()
    plan = TimePlan(60.0, clock)
    clock.now += 600.0
    assert plan.left == 0.0
    plan.start_training(texts=False)
    assert plan.extended
    assert plan.left == pytest.approx(20.0)
    assert (plan.training(0, [10.0]) or 0.0) >= 14.9


@pytest.mark.parametrize(("budget", "calibration"), [(20.0, 5.0), (60.0, 12.0), (300.0, 24.0)])
def test_calibrating_has_seconds_enough_also_of_a_short_budget(budget: float, calibration: float) -> None:
    plan = TimePlan(budget, Clock())
    plan.start_training(texts=False)
    assert (plan.left or 0.0) - (plan.training(0, [10.0]) or 0.0) == pytest.approx(calibration, rel=0.05)


def test_the_end_is_put_off_a_little_for_error_bars() -> None:
    clock = Clock()
    plan = TimePlan(100.0, clock)
    clock.now += 99.0
    assert plan.left == 0.0
    assert plan.left_with_grace == pytest.approx(5.0)
    assert TimePlan(None, clock).left_with_grace is None


def test_a_network_is_trained_even_if_others_took_more_than_was_planned() -> None:
    clock = Clock()
    plan = TimePlan(100.0, clock)
    plan.start_training(texts=True)
    clock.now += 150.0
    assert (plan.training(1, [1.0, 1.0]) or 0.0) > 0.0


def test_without_a_budget_nothing_is_bounded() -> None:
    plan = TimePlan(None, Clock())
    plan.start_training(texts=True)
    assert (plan.left, plan.counting(1), plan.training(0, [1.0])) == (None, None, None)
    assert not plan.extended


def test_without_error_bars_training_has_all_the_rest() -> None:
    plan = TimePlan(100.0, Clock(), calibrates=False)
    plan.start_training(texts=True)
    assert plan.training(0, [10.0]) == plan.left


def test_what_was_spent_before_counts() -> None:
    clock = Clock()
    assert TimePlan(100.0, clock, spent=30.0).spent == 30.0
    assert (TimePlan(100.0, clock, spent=30.0).left or 0.0) < 70.0
