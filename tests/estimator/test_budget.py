"""A fit keeps to its budget, and what a network is given follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from countless.estimator.fitting import calibrating, learning
from countless.estimator.fitting import fit as fitting
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.time_budget import DEFAULT_BUDGET, TimePlan
from countless.options import Network

SMALL: dict[str, Any] = {
    "exclude": "id",
    "batch": 100,
    "network": Network(hidden=16, blocks=1, embedding=8),
    "evidence": "none",
}


class Heard(Listener):
    """Remembers what is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.asked: list[tuple[int, int]] = []
        self.stages: list[str] = []

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def notice(self, message: str) -> None:
        self.notices.append(message)

    def calibrating(self, done: int, total: int) -> None:
        self.asked.append((done, total))


def test_without_options_a_fit_takes_five_minutes_at_most(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[float | None] = []

    class Noted(TimePlan):
        def __init__(self, budget: float | None, *rest: Any, **more: Any) -> None:
            plans.append(budget)
            super().__init__(budget, *rest, **more)

    monkeypatch.setattr(fitting, "TimePlan", Noted)
    monkeypatch.setattr("countless.train.options.DEFAULT_EPOCHS", (1, 1))
    assert DEFAULT_BUDGET == 300.0
    for options in ({}, {"epochs": 1}, {"budget": 2.0}, {"epochs": 1, "budget": 50.0}):
        fit(people, calibrate=False, **options, **SMALL)
    assert plans == [300.0, None, 2.0, 50.0]


def test_training_goes_on_for_a_third_of_a_budget_that_reading_has_used_up(people: Path) -> None:
    heard = Heard()
    estimator = fit(people, budget=0.01, calibrate=False, listener=heard, **SMALL)
    assert estimator.report["epochs"] > 0
    assert len(heard.notices) == 1
    assert heard.notices[0].startswith("reading the table took ")
    assert "--budget" in heard.notices[0]


def test_what_is_counted_comes_before_training_which_gets_the_time_that_is_left(people: Path) -> None:
    heard = Heard()
    fit(people, epochs=1, listener=heard, **SMALL)
    assert heard.stages[-3:] == ["counting pairs of columns", "training", "calibrating"]


@pytest.mark.parametrize(("budget", "queries"), [(1e-6, calibrating.LEAST_QUERIES), (1e6, 400)])
def test_calibration_stops_asking_when_its_time_is_over(
    estimator: Estimator, people: Path, budget: float, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "CALIBRATION_QUERIES", (400, 400))
    heard = Heard()
    plan = TimePlan(budget)
    calibrated_model = calibrating.calibrated(Source.open(people), estimator, 0, heard, plan)
    interval = calibrated_model.info()["interval"]
    assert 0 < interval["queries"] <= queries  # what the counts tell for certain calibrates nothing
    assert interval["coverage"] > 0.5
    assert heard.asked[-1] == (queries, 400)


def test_calibration_asks_enough_within_a_little_more_time(
    estimator: Estimator, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "CALIBRATION_QUERIES", (400, 400))
    heard = Heard()
    calibrating.calibrated(Source.open(people), estimator, 0, heard, TimePlan(10_000.0, spent=9_990.0))
    assert calibrating.ENOUGH_QUERIES <= heard.asked[-1][0] < 400


@pytest.mark.parametrize(("passes", "hidden"), [(2.0, 256), (50.0, 512)])
def test_the_width_follows_from_how_often_the_rows_can_be_seen(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: float, hidden: int
) -> None:
    monkeypatch.setattr(learning, "WIDE_FROM_ROWS", 1_000)
    monkeypatch.setattr(learning, "passes_within", lambda *_: passes)
    options: dict[str, Any] = {"exclude": "id", "budget": 3.0, "calibrate": False, "checkpoint": tmp_path / "c"}
    estimator = fit(people, **options, evidence="none")
    assert estimator.info()["model"]["hidden"] == hidden
    monkeypatch.setattr(learning, "passes_within", lambda *_: 52.0 - passes)  # a resumed fit keeps what it has begun
    again = fit(people, resume=True, **options, evidence="none")
    assert again.info()["model"]["hidden"] == hidden
    assert again.report["epochs"] == estimator.report["epochs"]


def test_the_passes_are_measured(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "WIDE_FROM_ROWS", 1_000)
    monkeypatch.setattr("countless.train.speed.PILOT_SECONDS", 0.0)
    for evidence, hidden in (("none", 256), ("auto", 128)):  # by default the file holds all of so small a table
        estimator = fit(people, exclude="id", budget=0.3, calibrate=False, evidence=evidence)
        assert estimator.info()["model"]["hidden"] == hidden
