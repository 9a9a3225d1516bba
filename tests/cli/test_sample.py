"""``countless sample``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from countless.query.row_check import RowCheck
from tests.cli.test_cli import Run, run
from tests.texts import NOTE, URL, random_estimator

__all__ = ["run"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_estimator(URL).save(tmp_path_factory.mktemp("pages") / "pages.countless")


def test_a_string_per_line(run: Run, pages: Path) -> None:
    result = run("sample", pages)
    assert result.code == 0, result.err
    assert len(result.out.splitlines()) == 10
    assert run("sample", pages).out == result.out


def test_a_clause_a_count_and_a_seed(run: Run, pages: Path) -> None:
    result = run("sample", pages, "--where", "url LIKE 'w%a%'", "--count", 3, "--seed", 5)
    lines = result.out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("w") and "a" in line for line in lines)


def test_json(run: Run, pages: Path) -> None:
    rows = [json.loads(line) for line in run("sample", pages, "--count", 4, "--json").out.splitlines()]
    assert len(rows) == 4
    assert all(list(row) == ["row", "log_prob", "cut"] and list(row["row"]) == ["url"] for row in rows)


def test_tabs_and_nulls(run: Run, tmp_path: Path) -> None:
    model = random_estimator(URL, NOTE).save(tmp_path / "m.countless")
    result = run("sample", model, "--where", "note IS NULL AND url LIKE '%\t%'", "--count", 2)
    names, *lines = result.out.splitlines()
    assert names == "url\tnote"
    for line in lines:
        url, note = line.split("\t")
        assert r"\t" in url
        assert note == "NULL"
    cut = run("sample", model, "--where", "length(note) > 4", "--count", 2)
    assert all(line.endswith("…") for line in cut.out.splitlines()[1:])


def test_columns_and_a_file(run: Run, model: Path, tmp_path: Path) -> None:
    names, *lines = run("sample", model, "--count", 4).out.splitlines()
    assert names.split("\t") == ["age", "city", "married", "since when", "score"]
    assert len(lines) == 4
    result = run("sample", model, "--where", "age > 60", "--count", 30, "-o", tmp_path / "old.csv")
    assert (result.code, result.out) == (0, "")
    assert result.err.endswith(f"wrote 30 rows to {tmp_path / 'old.csv'}\n")
    assert len((tmp_path / "old.csv").read_text().splitlines()) == 31
    assert run("sample", model, "-o", tmp_path / "nowhere" / "x.csv").code == 1


def test_what_rows_of_a_rare_condition_are_worth(run: Run, model: Path) -> None:
    where = "age = 44 AND city IS NULL AND \"since when\" = '2020-01-04' AND score = 0.5"
    result = run("sample", model, "--where", where, "--count", 300)
    assert re.fullmatch(r"note: 300 rows are worth about \d+ independent ones\n", result.err)


def test_fewer_rows_than_were_asked_for(run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allows = RowCheck.allows
    monkeypatch.setattr(RowCheck, "allows", lambda *given: allows(*given) & (np.arange(given[-1]) == 0))
    result = run("sample", model, "--where", "age > 30", "--count", 300, "-o", tmp_path / "few.csv")
    assert result.code == 0
    assert "note: only 6 of 300 rows could be drawn: the others failed the condition" in result.err
    assert result.err.endswith(f"wrote 6 rows to {tmp_path / 'few.csv'}\n")


@pytest.mark.parametrize("command", [("sample", "--count", "20000"), ("sample", "--count", "20000", "--json")])
def test_who_reads_may_leave(command: tuple[str, ...], model: Path) -> None:
    name, *options = command
    arguments = [sys.executable, "-m", "countless.cli.main", name, str(model), *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_errors(run: Run, pages: Path) -> None:
    assert run("sample", pages, "--where", "url = 'a' AND url = 'b'").code == 1
    assert run("sample", pages, "--count", 0).code == 2
