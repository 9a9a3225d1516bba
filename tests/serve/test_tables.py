"""Counting in tables: what is refused, what is said of a table that is gone, and that it can be stopped."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from countless import Estimator, fit
from countless.cancellation import ComputationCancelledError, cancellable
from countless.data.sources.source import connect
from countless.errors import DataError, SourceError, UnsupportedQueryError
from countless.options import Network
from countless.serve.models import NamingError, load_models
from countless.serve.tables import CheckedTable
from tests.serve.conftest import Client


@pytest.fixture
def table(people: Path, estimator: Estimator) -> CheckedTable:
    return CheckedTable(str(people), estimator.schema)


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "*.parquet"])
def test_a_table_that_is_gone(
    model: Path, people: Path, tmp_path: Path, start: Callable[..., Client], kind: str
) -> None:
    folder = tmp_path / "se cret"
    folder.mkdir()
    file = folder / f"table.{kind.rpartition('.')[2]}"
    if kind == "duckdb":
        connection = connect()
        connection.execute(f"ATTACH '{file}' AS d")
        connection.execute(f"CREATE TABLE d.people AS SELECT * FROM '{people}'")
        connection.close()
    else:
        shutil.copy(people, file)
    given = folder / kind if "*" in kind else file
    client = start(load_models([str(model)], [f"people={given}"]))
    assert client.ask("check", where="TRUE").json["rows"] == 3000
    if kind == "duckdb":  # it is open, so that it can still be read
        return
    file.unlink()
    reply = client.ask("check", where="age > 30")
    assert (reply.status, reply.error["kind"]) == (422, "SourceError")
    assert reply.error["message"].startswith("the table is gone: table.parquet was there when the service started")
    assert b"se cret" not in reply.content
    file.write_bytes(b"no parquet at all")
    reply = client.ask("check", where="age > 31")
    assert (reply.status, reply.error["kind"]) == (422, "SourceError")
    assert "table.parquet" in reply.error["message"]
    assert b"se cret" not in reply.content
    assert str(tmp_path).encode() not in reply.content
    shutil.copy(people, file)
    assert client.ask("check", where="age > -1 OR age IS NULL").json["rows"] == 3000


def test_a_table_that_was_replaced(
    model: Path, people: Path, tmp_path: Path, start: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        shutil.copy(people, tmp_path / f"{name}.parquet")
    link = tmp_path / "current.parquet"
    link.symlink_to(tmp_path / "one.parquet")
    client = start(load_models([str(model)], [f"people={link}"]))
    assert client.ask("check", where="TRUE").json["rows"] == 3000
    link.unlink()
    link.symlink_to(tmp_path / "two.parquet")
    reply = client.ask("check", where="age > 30")
    assert reply.status == 200 or "start the service again" in reply.error["message"]
    for file in (link, tmp_path / "one.parquet"):
        file.unlink()
        os.mkfifo(file)  # nobody ever writes to it
    reply = client.ask("check", where="age > 31")
    assert reply.status == 422
    assert "one.parquet: it is not a regular file but a pipe" in reply.error["message"]
    assert str(tmp_path).encode() not in reply.content


@pytest.mark.parametrize(
    "query", ["SELECT * FROM '{}'", "SELECT * FROM read_parquet('{}')", 'FROM "{}" WHERE age > -1']
)
@pytest.mark.parametrize("name", ["it''s.parquet", "{folder}/it''s.parquet", "it*.parquet"])
def test_a_query_on_files(
    model: Path,
    people: Path,
    tmp_path: Path,
    start: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(people, "it's.parquet")
    name = name.format(folder=tmp_path)
    given = query.format(name.replace("''", "'") if '"' in query else name)
    client = start(load_models([str(model)], [f"people={given}"]))
    truth = connect().execute(f"SELECT count(*) FROM '{people}' WHERE age > 40").fetchall()
    assert [(client.ask("check", where="age > 40").json["rows"],)] == truth
    Path("it's.parquet").unlink()
    reply = client.ask("check", where="age > 41")
    assert reply.error["message"].startswith("the table is gone: it's.parquet was there when the service started")
    assert str(tmp_path).encode() not in reply.content


def test_a_query_that_hides_its_files(model: Path, people: Path) -> None:
    folder, name = people.parent, people.name
    with pytest.raises(SourceError, match=r"the service cannot read this query: .*; it may read files of this machine"):
        load_models([str(model)], [f"people=SELECT * FROM read_parquet(concat('{folder}/', '{name}'))"])


def test_csv_tables(tmp_path: Path, people: Path, model: Path) -> None:
    table = tmp_path / "orders.csv"
    table.write_text("shop;total\n" + "".join(f"{n % 3};{n % 20},5\n" for n in range(100)))
    options = {"delim": ";", "decimal_separator": ","}
    network = Network(hidden=8, blocks=1, embedding=4)
    own = fit(table, csv=options, epochs=1, network=network).save(tmp_path / "own.countless")
    for csv in (None, options):
        served = load_models([str(own), str(model)], [f"own={table}", f"people={people}"], csv)
        assert served["own"].table is not None
        assert served["own"].table.count("total > 9") == 55
        assert served["people"].table is not None
    with pytest.raises(DataError, match=r'"total" is VARCHAR in the table and DOUBLE in the model: .*--csv'):
        load_models([str(own)], [f"own={table}"], {"delim": ";"})
    with pytest.raises(NamingError, match="no --table is one"):
        load_models([str(model)], [f"people={people}"], options)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("CAST(CAST(CAST(age AS VARCHAR) AS BLOB) AS BIT) = '1'::BIT", "not their bytes"),
        ("CAST((city, 1) AS VARCHAR) = 'x'", "each value for itself"),
        ("regexp_matches(city, '(.?){900}c|(.?){900}d')", "more than 1,000 steps"),
        ("regexp_matches(city, lower(city))", "the pattern as a text"),
    ],
)
def test_what_could_take_a_scan_for_ever(table: CheckedTable, where: str, words: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=words):
        table.count(where)


def test_plain_conditions_are_counted(table: CheckedTable) -> None:
    for where in ("city IN ('Oslo', 'Bergen')", "regexp_matches(city, '^[A-Z][a-z]{2,20}$')", "city SIMILAR TO 'O.*'"):
        assert table.count(where) > 0


def test_counting_stops_when_nobody_waits(table: CheckedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    is_wanted = threading.Event()
    is_wanted.set()
    source = table._source

    def endless(clauses: list[str]) -> Any:
        return source.rows("SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c")

    monkeypatch.setattr(source, "counts", endless)
    timer = threading.Timer(0.3, is_wanted.clear)
    timer.start()
    with cancellable(is_wanted.is_set), pytest.raises(ComputationCancelledError):
        table.count("TRUE")
    timer.join()
    monkeypatch.undo()
    assert table.count("TRUE") == 3000
