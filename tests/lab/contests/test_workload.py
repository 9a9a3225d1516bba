"""The contest of a fit with a workload and one without."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from countless.data.encoding.table import Table
from countless.options import EncodeOptions
from countless_lab.contests.workload import (
    ASKED,
    PLAIN,
    RANDOM,
    WORKLOAD,
    WorkloadContestOptions,
    contest,
    draw_templates,
)
from tests.cli.test_cli import Run, run

__all__ = ["run"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.csv"
    pd.DataFrame({name: [n * index % 7 for n in range(300)] for index, name in enumerate("abcd", 2)}).to_csv(
        path, index=False
    )
    return path


def test_both_are_asked_the_same(small: Path) -> None:
    said: list[str] = []
    results = contest(
        str(small), WorkloadContestOptions(epochs=1, templates=2, queries=5, asked=8, seeds=2), said.append
    )
    assert set(results["table"]) == {ASKED, RANDOM}
    assert all(set(models) == {PLAIN, WORKLOAD} for models in results["table"].values())
    assert all(errors["p50"] >= 1 for models in results["table"].values() for errors in models.values())
    assert len(results["seeds"]) == 2 * 2 * 2
    assert len(said) == 4
    assert json.loads(json.dumps(results))["table"] == results["table"]


def test_templates_are_sets_of_columns(people: Path) -> None:
    schema = Table.encode(people, EncodeOptions()).schema
    templates = draw_templates(schema, 30, seed=1)
    assert templates == draw_templates(schema, 30, seed=1)
    assert {len(template) for template in templates} == {3, 4, 5, 6}
    assert all(template == sorted(set(template)) for template in templates)


def test_the_command(run: Run, small: Path) -> None:
    few = ("--epochs", 1, "--templates", 2, "--queries", 5, "--asked", 8, "--seeds", 1)
    result = run("bench", "workload", small, *few, "--json")
    assert result.code == 0, result.err
    assert "like the workload" in result.out
    assert json.loads(result.out.splitlines()[-1])["options"]["queries"] == 5
