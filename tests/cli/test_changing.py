"""``countless update``, ``countless check`` and ``estimate --table-rows``, as a person runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from countless import load
from countless.data.sources.source import connect
from countless.errors import ModelFileError
from tests.cli.test_cli import Run, run

__all__ = ["run"]


@pytest.fixture
def copied(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(model, tmp_path / "people.countless"))


@pytest.fixture(scope="module")
def rows(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "new.parquet"
    connect().execute(f"COPY (SELECT * REPLACE ('Paris' AS city) FROM '{people}' LIMIT 300) TO '{path}'")
    return path


def test_update_replaces_the_model(run: Run, copied: Path, rows: Path) -> None:
    result = run("update", copied, rows, "--epochs", "1")
    assert result.code == 0
    assert "300 new rows beside 3,000 old ones" in result.err
    assert "new values or cells: city 1" in result.err
    assert load(copied).estimate("city = 'Paris'").rows == 300
    assert "1 epoch" in result.err
    output = run("info", copied).out
    assert "300 new rows" in output
    assert run("estimate", copied, "city = 'Paris'", "--table-rows", "6600").out.startswith("600 rows")


def test_a_model_is_no_table(run: Run, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.estimator.estimator.Estimator.update", None)  # it is told before
    for arguments in (("update", copied, copied), ("check", copied, copied), ("fit", copied, "-o", copied)):
        result = run(*arguments)
        assert result.code == 1
        assert f"{copied} is a Countless model, not a table" in result.err


def test_update_elsewhere_leaves_the_model(run: Run, copied: Path, rows: Path, tmp_path: Path) -> None:
    before = copied.read_bytes()
    assert run("update", copied, rows, "--epochs", "1", "-o", tmp_path / "new.countless").code == 0
    assert copied.read_bytes() == before
    assert load(tmp_path / "new.countless").rows == 3_300


@pytest.mark.parametrize("where", ["training", "writing", "stopped"])
def test_a_failure_leaves_the_old_file(
    run: Run, copied: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = copied.read_bytes()

    def fails(*_: object, **__: object) -> None:
        raise KeyboardInterrupt if where == "stopped" else ModelFileError("the disk is full: make room")

    if where == "writing":
        monkeypatch.setattr("countless.store.archive.put_json", fails)
    else:
        monkeypatch.setattr("countless.estimator.updating.update.encoded", fails)
    result = run("update", copied, rows, "--epochs", "1")
    assert result.code == (130 if where == "stopped" else 1)
    assert ("is unchanged" if where == "stopped" else "the disk is full") in result.err
    assert copied.read_bytes() == before
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_check_for_people_and_for_cron(run: Run, model: Path, people: Path, rows: Path) -> None:
    fine = run("check", model, people)
    assert fine.code == 0
    assert "the model still matches the table" in fine.out
    assert "of error bars hold" in fine.out
    assert run("check", model, people, "--quiet").out == ""
    bad = run("check", model, rows, "-q", "--queries", "0")
    assert bad.code == 3
    assert len(bad.out.splitlines()) == 1
    assert "city has drifted" in bad.out
    output = json.loads(run("check", model, rows, "--json", "--sample", "0").out)
    assert output["drifted"][0] == "city"
    assert not output["ok"]
    assert run("check", model, people.parent / "nothing.parquet").code == 1


def test_table_rows_of_many_clauses(run: Run, model: Path, tmp_path: Path) -> None:
    clauses = tmp_path / "clauses.sql"
    clauses.write_text("age > 40\nTRUE\n")
    result = run("estimate", model, "--file", clauses, "--table-rows", "6000", "--json")
    assert [round(json.loads(line)["rows"]) for line in result.out.splitlines()][1] == 6_000


def test_rows_that_were_learned_before_are_told(
    run: Run, copied: Path, rows: Path, people: Path, tmp_path: Path
) -> None:
    assert "count twice" not in run("update", copied, rows, "--epochs", "1").err
    again = tmp_path / "again.csv"
    connect().execute(f"COPY (FROM '{rows}' ORDER BY id DESC) TO '{again}'")
    result = run("update", copied, again, "--epochs", "1")
    assert result.code == 0
    assert "the model learned these rows before, in the update of 2" in result.err
    assert "they will count twice: give only rows that are new" in result.err
    assert result.err.index("count twice") < result.err.index("training")
    result = run("update", copied, people, "--epochs", "1", "-o", tmp_path / "twice.countless")
    assert "these rows are the table that the model was fitted on; they will count twice" in result.err


@pytest.mark.parametrize(("code", "updates"), [(0, False), (1, False), (2, False), (3, True), (130, False)])
def test_the_documented_script_updates_a_model_that_has_drifted_only(code: int, updates: bool, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "changing.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sh\n(.*?)```", page, re.S)
    (tmp_path / "nightly.sh").write_text(script.replace("/srv/models", str(tmp_path)))
    command = tmp_path / "countless"
    command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\n[ "$1" = check ] && exit {code}\nexit 0\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(["sh", tmp_path / "nightly.sh"], env={**os.environ, "PATH": path}, check=False)
    called = (tmp_path / "called").read_text().splitlines()
    assert called[0] == "check people.countless people.parquet --quiet"
    assert called[1:] == (["update people.countless today.parquet"] if updates else [])
    assert result.returncode == (0 if code in (0, 3) else 1)
