"""``countless distribution``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_cli import Run, run

__all__ = ["run"]


def test_a_line_for_each_value(run: Run, model: Path) -> None:
    done = run("distribution", model, "city", "--where", "age > 40")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == 7
    assert any(line.startswith("Łódź") for line in lines)


def test_bins_and_json(run: Run, model: Path) -> None:
    found = json.loads(run("distribution", model, "since when", "city", "--bins", 3, "--json").out)
    assert found["total"]["rows"] == 3000
    assert {"since when_from", "since when_to", "city", "share", "rows", "low", "high"} == set(found["values"][0])


def test_errors(run: Run, model: Path) -> None:
    done = run("distribution", model, "cty")
    assert done.code == 1
    assert 'did you mean "city"?' in done.err
    assert run("distribution", model).code == 2
