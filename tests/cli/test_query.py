"""``countless query``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.cli.test_cli import Run, run

__all__ = ["run"]

SQL = "SELECT city, count(*) AS n, avg(age) FROM people WHERE married GROUP BY city ORDER BY n DESC LIMIT 2"


def test_a_table(run: Run, model: Path) -> None:
    result = run("query", model, SQL)
    assert result.code == 0, result.err
    head, *rows = result.out.splitlines()
    assert head.split() == ["city", "n", "avg(age)"]
    assert len(rows) == 2
    assert "of about 1," in result.err
    assert "ms" in result.err


def test_csv(run: Run, model: Path) -> None:
    result = run("query", model, SQL, "--csv")
    head, *rows = csv.reader(result.out.splitlines())
    assert head == ["city", "n", "avg(age)"]
    assert int(rows[0][1]) >= int(rows[1][1])


def test_json_with_intervals(run: Run, model: Path) -> None:
    output = json.loads(run("query", model, SQL, "--json", "--intervals").out)
    names = [column["name"] for column in output["columns"]]
    assert names == ["city", "n", "n_low", "n_high", "avg(age)", "avg(age)_low", "avg(age)_high"]
    assert all(row[2] <= row[1] <= row[3] and row[5] <= row[4] <= row[6] for row in output["rows"])
    assert output["count"]["where"] == "married"
    assert output["left_out_rows"] >= 0


def test_dates_in_json(run: Run, model: Path) -> None:
    output = json.loads(run("query", model, 'SELECT quantile_disc("since when", 0.5) FROM t', "--json").out)
    assert output["rows"][0][0].startswith("2020-0")


def test_errors(run: Run, model: Path) -> None:
    result = run("query", model, "SELECT max(age) FROM t")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: min and max cannot be estimated")
    assert run("query", model, SQL, "--json", "--csv").code == 2
    assert run("query", model).code == 2
