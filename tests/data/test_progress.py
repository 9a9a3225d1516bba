"""Progress of a pass: a time left that can be believed, or none."""

from __future__ import annotations

import pytest

from countless.data.progress import Meter, ScanProgress


def readings(*steps: tuple[float, float], begun: float = 0.0) -> list[ScanProgress]:
    """What a meter of a million rows tells at these times and fractions."""
    now = [0.0]
    readings_so_far: list[ScanProgress] = []
    meter = Meter(readings_so_far.append, 1_000_000, begun, clock=lambda: now[0])
    for seconds, fraction in steps:
        now[0] = seconds
        meter.at(fraction)
    return readings_so_far


def test_nothing_is_told_of_the_time_before_something_is_done() -> None:
    for reading in readings((0.0, 0.0), (1.0, 0.0), (60.0, 0.0), (0.001, 0.2), (5.0, 1e-6)):
        assert (reading.rows_per_second, reading.seconds_left) == (None, None)


def test_then_the_time_left_follows_from_what_was_done() -> None:
    (reading,) = readings((30.0, 0.25))
    assert reading.seconds_left == pytest.approx(90.0)
    assert reading.rows_per_second == pytest.approx(250_000 / 30)


def test_what_was_done_before_took_no_time() -> None:
    (reading,) = readings((10.0, 0.75), begun=0.5)
    assert reading.seconds_left == pytest.approx(10.0)
