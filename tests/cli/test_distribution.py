"""``countless distribution``."""

from __future__ import annotations

import json
from pathlib import Path

from countless.data.sources.source import connect
from tests.cli.test_cli import Run, run

__all__ = ["run"]


def test_a_line_for_each_value(run: Run, model: Path) -> None:
    result = run("distribution", model, "city", "--where", "age > 40")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert len(lines) == 7
    assert any(line.startswith("Łódź") for line in lines)


def test_bins_and_json(run: Run, model: Path) -> None:
    output = json.loads(run("distribution", model, "since when", "city", "--bins", 3, "--json").out)
    assert output["total"]["rows"] == 3000
    assert {"since when_from", "since when_to", "city", "share", "rows", "low", "high"} == set(output["values"][0])


def test_edges_and_a_file(run: Run, model: Path, tmp_path: Path) -> None:
    output = json.loads(run("distribution", model, "age", "--bins", "20, 40,60", "--json").out)
    assert [(value["age_from"], value["age_to"]) for value in output["values"]] == [(20, 40), (40, 60)]
    assert output["outside"] == 3000 - sum(value["rows"] for value in output["values"])
    for name in ("ages.csv", "ages.parquet"):
        out = tmp_path / name
        result = run("distribution", model, "age", "--bins", "20,40,60", "-o", out)
        assert (result.code, result.out, result.err) == (0, "", f"wrote 2 lines to {out}\n")
        lines = connect().sql(f"SELECT age_from, age_to, rows FROM '{out}'").fetchall()
        assert lines == [(value["age_from"], value["age_to"], value["rows"]) for value in output["values"]]
    day = run("distribution", model, "since when", "--bins", "2020-01-01,2020-01-15,2020-02-09", "--json")
    assert json.loads(day.out)["outside"] == 0


def test_errors(run: Run, model: Path, tmp_path: Path) -> None:
    result = run("distribution", model, "cty")
    assert result.code == 1
    assert 'did you mean "city"?' in result.err
    assert run("distribution", model).code == 2
    for bins in ("0", "x", "2.5"):
        assert run("distribution", model, "age", "--bins", bins).code == 2
    result = run("distribution", model, "age", "--bins", "20,x")
    assert (result.code, len(result.err.splitlines())) == (1, 1)
    assert "the ending must be" in run("distribution", model, "age", "-o", tmp_path / "x.doc").err
