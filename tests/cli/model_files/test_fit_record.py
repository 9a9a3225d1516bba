"""``countless fit --resume``: it goes on with the same fit only, and a model of another table is never kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from countless import load
from countless.data.sources.fingerprints import table_digest
from countless.data.sources.source import Source, connect
from tests.cli.test_cli import FAST, Run, run

__all__ = ["run"]


@pytest.fixture
def table(people: Path, tmp_path: Path) -> Path:
    """Some of the people, in a file that may be changed."""
    path = tmp_path / "some.parquet"
    connect().execute(f"COPY (SELECT age, city, married FROM '{people}' LIMIT 500) TO '{path}'")
    return path


@pytest.fixture
def other(people: Path, tmp_path: Path) -> Path:
    path = tmp_path / "other.parquet"
    connect().execute(f"COPY (SELECT age, score FROM '{people}' LIMIT 400) TO '{path}'")
    return path


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".parquet")


def test_a_finished_model_of_another_fit_is_replaced(run: Run, table: Path, other: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    result = run("fit", other, "-o", model, "--resume", *FAST)
    assert result.code == 0, result.err
    assert (
        f"nothing to resume: {model} is of another table, or the table has changed since; starting again" in result.err
    )
    assert load(model).columns == ("age", "score")
    result = run("fit", other, "-o", model, "--resume", "--seed", "3", "--exclude", "score", *FAST)
    assert result.code == 0, result.err
    assert "had other options: --exclude was not given, now score, --seed was 0, now 3; starting again" in result.err
    assert load(model).columns == ("age",)
    before = model.read_bytes()
    result = run("fit", other, "-o", model, "--resume", "--seed", "3", "--exclude", "score", *FAST)
    assert result.code == 0
    assert "is finished, of this table and with these options" in result.err
    assert model.read_bytes() == before
    os.utime(other, ns=(1, 1))
    assert (
        "starting again" in run("fit", other, "-o", model, "--resume", "--seed", "3", "--exclude", "score", *FAST).err
    )
    assert files(tmp_path) == ["m.countless"]


def test_a_refit_that_was_killed_at_once_is_not_finished(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    before = load(model).report["seconds"], model.stat().st_mtime_ns
    (tmp_path / "m.countless.run").write_text("{}")  # what a killed process leaves
    (tmp_path / "m.countless.checkpoint.partial").write_bytes(b"half")
    result = run("fit", table, "-o", model, "--resume", *FAST)
    assert result.code == 0, result.err
    assert "was killed before its first checkpoint; starting again" in result.err
    assert model.stat().st_mtime_ns != before[1]
    assert files(tmp_path) == ["m.countless"]


def test_other_options_are_told_before_the_table_is_read(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    queries = tmp_path / "queries.sql"
    queries.write_text("age > 30")
    with monkeypatch.context() as patch:
        patch.setattr(Source, "counts", stop)
        assert run("fit", table, "-o", model, *FAST).code == 130
    left = ["m.countless.checkpoint", "m.countless.run", "queries.sql"]
    assert files(tmp_path) == left
    for change, message in (
        (("--seed", "1", "--masking", "none"), "--masking was uniform, now none, --seed was 0, now 1; give the same"),
        (
            ("--columns", "age,city"),
            "--columns was not given, now age,city; give the same options, or fit again without",
        ),
        (("--workload", queries), "it had another --workload"),
    ):
        result = run("fit", table, "-o", model, "--resume", *change, *FAST)
        assert result.code == 1
        assert f"cannot continue from {model}.checkpoint: " in result.err
        assert message in result.err
        assert "counting" not in result.err
    result = run("fit", table, "-o", model, "--columns", "nosuch", *FAST)  # a new fit that comes to nothing
    assert result.code == 1
    assert "replacing" not in result.err
    assert files(tmp_path) == left
    with monkeypatch.context() as patch:  # what a fit is after training does not matter to the checkpoint
        patch.setattr("countless.train.loop._Run.epoch_of_steps", stop)
        result = run("fit", table, "-o", model, "--resume", "--evidence", "5", *FAST)
    assert result.code == 0, result.err
    assert load(model).info()["evidence"]["rows"] == 5
    assert files(tmp_path) == ["m.countless", "queries.sql"]


def test_a_new_fit_removes_the_checkpoints_of_the_old_one_when_it_trains(
    run: Run, table: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    monkeypatch.setattr(Source, "counts", stop)
    assert run("fit", table, "-o", model, *FAST).code == 130
    with monkeypatch.context() as patch:
        patch.setattr("countless.train.loop._Run.save", lambda self: None)
        result = run("fit", other, "-o", model, *FAST)
        assert result.code == 130
        assert f"starting again and replacing {model}.checkpoint of an earlier run" in result.err
    assert files(tmp_path) == []  # nothing to go on from: neither a stale checkpoint nor a record


def test_what_failed_leaves_nothing(run: Run, table: Path, tmp_path: Path) -> None:
    assert run("fit", table, "-o", tmp_path / "m", "--columns", "nosuch").code == 1
    assert run("fit", tmp_path / "nothing.parquet", "-o", tmp_path / "m", "--resume").code == 1
    assert files(tmp_path) == []


def test_a_digest_tells_tables_apart(table: Path, other: Path, tmp_path: Path) -> None:
    assert table_digest(table) == table_digest(str(table)) != table_digest(other)
    both = table_digest(str(tmp_path / "*.parquet"))
    assert both not in (None, table_digest(table), table_digest(other))
    shutil.copy(table, tmp_path / "third.parquet")
    assert table_digest(str(tmp_path / "*.parquet")) != both
    database = tmp_path / "shop.duckdb"
    database.write_bytes(b"")
    assert table_digest(database, "a") == table_digest(f"{database}::a") != table_digest(database, "b")
    assert table_digest("adult") is not None
    assert table_digest("postgresql://db/shop", "orders") is None
    assert table_digest(tmp_path / "nothing.parquet") is None
    assert table_digest(connect().sql("SELECT 1")) is None
