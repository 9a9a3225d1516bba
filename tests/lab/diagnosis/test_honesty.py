"""Which questions have intervals that miss the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from countless import Estimator
from countless_lab.diagnosis import honesty
from tests.cli.test_cli import Run, run  # noqa: F401 - a fixture


def test_every_question_is_counted_once(estimator: Estimator, people: Path) -> None:
    found = honesty.measure_honesty(estimator, people, 60)
    assert set(found.asked.values()) == {3}
    assert len(found.asked) > 5
    assert all(found.outside[kind] + found.refused[kind] <= count for kind, count in found.asked.items())
    assert len(found.misses) <= sum(found.outside.values())


def test_misses_are_listed(run: Run, model: Path, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(honesty, "miss_factor", lambda truth, low, high: 3.0)
    done = run("bench", "honesty", people, model, "--questions", "30", "--show", "2")
    assert done.code == 0, done
    assert done.out.count("off by 3.0x") == 2
    assert "by more than a factor of 2" in done.out.splitlines()[-1]


def test_json(run: Run, model: Path, people: Path) -> None:  # noqa: F811
    done = run("bench", "honesty", people, model, "--questions", "30", "--json")
    found = json.loads(done.out)
    assert set(found) == {"asked", "outside", "refused", "misses"}
    assert set(found["asked"].values()) == {2}
