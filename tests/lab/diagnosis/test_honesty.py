"""Which questions have intervals that miss the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from countless import Estimator
from countless_lab.diagnosis import honesty
from tests.cli.test_cli import Run, run  # noqa: F401 - a fixture


def test_every_question_is_counted_once(estimator: Estimator, people: Path) -> None:
    measured = honesty.measure_honesty(estimator, people, 60)
    assert set(measured.asked.values()) == {3}
    assert len(measured.asked) > 5
    assert all(measured.outside[kind] + measured.refused[kind] <= count for kind, count in measured.asked.items())
    assert len(measured.misses) <= sum(measured.outside.values())


def test_misses_are_listed(run: Run, model: Path, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(honesty, "miss_factor", lambda truth, low, high: 3.0)
    result = run("bench", "honesty", people, model, "--questions", "30", "--show", "2")
    assert result.code == 0, result
    assert result.out.count("off by 3.0x") == 2
    assert "by more than a factor of 2" in result.out.splitlines()[-1]


def test_json(run: Run, model: Path, people: Path) -> None:  # noqa: F811
    result = run("bench", "honesty", people, model, "--questions", "30", "--json")
    record = json.loads(result.out)
    assert set(record) == {"asked", "outside", "refused", "misses"}
    assert set(record["asked"].values()) == {2}
