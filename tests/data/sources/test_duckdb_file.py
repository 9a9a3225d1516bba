"""DuckDB files: read in place, by table or by query, never changed."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from countless.data.encoding.table import Table
from countless.data.sources.duckdb_file import _reason
from countless.data.sources.source import Source, connect
from countless.errors import SourceError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders AS SELECT range AS n, range % 3 AS kind FROM range(10)")
        connection.execute('CREATE SCHEMA "Odd one"; CREATE TABLE "Odd one"."my.table" AS SELECT 1 AS a')
        connection.execute("CREATE VIEW few AS SELECT * FROM orders WHERE n < 3")
    return path


@pytest.mark.parametrize(
    ("table", "query", "expected"),
    [
        ("orders", None, 10),
        ("MAIN.Orders", None, 10),
        ("few", None, 3),
        ('"odd one"."my.table"', None, 1),
        (None, "SELECT kind, count(*) AS many FROM orders GROUP BY kind -- by kind", 3),
        (None, 'FROM orders, "Odd one"."my.table";', 10),
    ],
)
def test_a_table_or_a_query_of_a_file(shop: Path, table: str | None, query: str | None, expected: int) -> None:
    before = shop.read_bytes()
    source = Source.open(shop, table=table, query=query)
    assert source.count() == expected
    assert source.sampled(2, 1).count() == min(2, expected)
    assert Source.open(f"{shop}::{table or query}").count() == expected
    with pytest.raises(SourceError, match="read-only"):
        source.run("CREATE TABLE source.main.mine AS SELECT 1")
    assert shop.read_bytes() == before


def test_the_only_table_needs_no_name(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE whoever AS FROM '{people}'")
    assert Table.encode(path).fingerprint == Table.encode(people).fingerprint


def test_what_is_wrong_is_told_in_one_line(shop: Path, tmp_path: Path) -> None:
    junk, lite, empty = tmp_path / "junk.db", tmp_path / "lite.db", tmp_path / "empty.duckdb"
    junk.write_bytes(b"nothing" * 1000)
    sqlite3.connect(lite).execute("CREATE TABLE t (a)").connection.close()
    duckdb.connect(str(empty)).close()
    for source, table, query, message in (
        (tmp_path / "none.duckdb", None, None, "no such file"),
        (junk, None, None, "it is not a DuckDB database"),
        (lite, None, None, "it is not a DuckDB database"),
        (empty, None, None, "has no tables"),
        (shop, None, None, "has 3 tables: choose one by table, or after ::; the tables are Odd one.my.table, "),
        (shop, "order", None, 'has no table "order": did you mean "orders"'),
        (shop, None, "SELECT nothing FROM orders", "the query cannot be run: Binder Error"),
        (shop, None, "SELECT 1) TO 'x'; --", "the query cannot be run: "),
        (shop, None, "COPY orders TO 'x.csv'", "must be a SELECT"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            Source.open(source, table=table, query=query)
        assert "\n" not in str(caught.value)
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(SourceError, match="is a directory"):
        Source.open(tmp_path / "folder.db")
    with pytest.raises(SourceError, match="needs a database"):
        Source.open(connect().sql("SELECT 1"), table="t")


def test_a_file_that_is_open_elsewhere(shop: Path) -> None:
    with duckdb.connect(str(shop)), pytest.raises(SourceError, match="this process has it open"):
        Source.open(shop, table="orders")
    program = f"import duckdb, sys; c = duckdb.connect({str(shop)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(SourceError, match="another process has it open for writing; close it there"):
            Source.open(shop, table="orders")
        other.communicate()
    assert Source.open(shop, table="orders").count() == 10


def test_why_a_file_cannot_be_opened() -> None:
    newer = "Trying to read a database file with version number 99, but we can only read versions between 64 and 67."
    assert "another version of DuckDB" in _reason(duckdb.IOException(newer))
    assert _reason(duckdb.IOException("disk on fire\nmore")) == "disk on fire"


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt"])
def test_text_formats_may_be_compressed(ending: str, packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{ending}{packed}"
    form = "json" if "js" in ending else "csv"
    more = {".tsv": ", DELIMITER '\t'", ".txt": ", HEADER false"}.get(ending, "")
    compression = {"": "none", ".gz": "gzip", ".zst": "zstd"}[packed]
    rows = "SELECT 'v' || range AS line FROM range(7)"
    connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT {form}, COMPRESSION {compression}{more})")
    if packed == ".gz":
        assert gzip.decompress(path.read_bytes())
    source = Source.open(path)
    assert source.rows(f"FROM {source.table} ORDER BY 1") == [(f"v{number}",) for number in range(7)]
