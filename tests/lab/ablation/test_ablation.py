"""The bench of ideas: a whole small run, that it goes on where it was, and what is made of its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from countless_lab.ablation.ideas import IDEAS
from countless_lab.ablation.study import agreement, sheets
from countless_lab.ablation.trial import QUESTION_SEED
from tests.cli.test_cli import Run, run

__all__ = ["run"]


def trial(idea: str, seconds: float, spread: float, table: str = "people") -> dict[str, Any]:
    quantiles = dict.fromkeys(("p50", "p90", "p95", "p99", "p99.9", "max"), 1.0 + spread)
    bits = {"train": 9.0, "masked": 8.0, "unmasked": 7.0}
    about = {"table": table, "idea": idea, "seconds": seconds, "spread": spread, "bits": bits, "q_error": quantiles}
    return {**about, "rows_per_second": 1000, "parameters": 10}


def test_two_ideas_on_a_table(people: Path, tmp_path: Path, run: Run) -> None:
    command = ["bench", "ablation", str(people), "--exclude", "id", "--ideas", "paper,units-256", "--seconds", "1s"]
    command += ["--queries", "20", "-o", str(tmp_path / "out"), "--json"]
    result = run(*command)
    assert result.code == 0, result.err
    record = json.loads(result.out)
    assert [one["idea"] for one in record["trials"]] == ["paper", "units-256"]
    assert all(one["q_error"]["max"] >= 1 and one["epochs"] > 0 for one in record["trials"])
    assert str(people) not in json.dumps(record)
    assert "| units-256 |" in (tmp_path / "out" / "ablation.md").read_text()
    again = run(*command)
    assert "3 of 3 cells done by an earlier run" in again.err
    assert json.loads(again.out)["trials"] == record["trials"]


def test_an_unknown_idea(people: Path, run: Run) -> None:
    result = run("bench", "ablation", people, "--ideas", "magic")
    assert result.code == 2
    assert "magic: choose from default, paper" in " ".join(result.err.split())


def test_ranks_of_two_lengths() -> None:
    short = [trial(idea, 10, spread) for idea, spread in (("a", 0.1), ("b", 0.2), ("c", 0.3))]
    alike = [trial(idea, 60, spread) for idea, spread in (("a", 0.05), ("b", 0.1), ("c", 0.2))]
    (comparison,) = agreement([*short, *alike])
    assert (comparison["short"], comparison["long"], comparison["spearman"]) == (10, 60, pytest.approx(1))
    reverse = [trial(idea, 60, spread) for idea, spread in (("a", 0.2), ("b", 0.1), ("c", 0.05))]
    assert agreement([*short, *reverse])[0]["spearman"] == pytest.approx(-1)
    assert agreement([*short, *alike[:2]]) == []


def test_the_best_idea_comes_first() -> None:
    (sheet,) = sheets({"trials": [trial("a", 10, 0.3), trial("b", 10, 0.2)], "agreement": []})
    assert [row[0] for row in sheet.rows] == ["b", "a"]
    assert "**0.200**" in sheet.markdown()


def test_selection_uses_no_published_seed() -> None:
    assert QUESTION_SEED not in range(1000)
    assert len(IDEAS) == len({json.dumps(dict(idea.options), sort_keys=True) for idea in IDEAS.values()})
