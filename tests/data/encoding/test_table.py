"""Values become codes and come back, for every type, source and odd name."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from countless.data.columns.types import sql_literal
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import EmptyTableError, OptionError, SourceError
from countless.options import EncodeOptions
from tests.exact import column_codes


def encode(sql: str, **options: Any) -> Table:
    return Table.encode(connect().sql(sql), EncodeOptions(**options))


def decoded(table: Table, index: int = 0) -> list[str | None]:
    column = table.schema.coded[index]
    values = [*column.values, None]
    return [values[code] for code in table.codes[index]]


TYPES = {
    "TINYINT": ["-3", "0", "7"],
    "UBIGINT": ["0", "18446744073709551615"],
    "HUGEINT": ["-170141183460469231731687303715884105727", "5"],
    "FLOAT": ["-inf", "-0.1", "1e+30", "inf", "nan"],
    "DOUBLE": ["-inf", "-1.5e-300", "0.1", "0.30000000000000004", "inf", "nan"],
    "DECIMAL(10,2)": ["-1.50", "0.00", "99999999.99"],
    "BOOLEAN": ["false", "true"],
    "VARCHAR": ["", " ", "A", "O'Hara", "a", "ab", "ß", "日本", "😀"],
    "DATE": ["0044-03-15 (BC)", "1969-12-31", "2020-02-29"],
    "TIME": ["00:00:00", "23:59:59.5"],
    "TIMESTAMP": ["1969-12-31 23:59:59.999999", "2020-02-29 12:00:00", "infinity"],
    "TIMESTAMP_NS": ["2020-02-29 12:00:00.123456789"],
    "TIMESTAMP WITH TIME ZONE": ["2020-02-29 12:00:00+00", "2020-02-29 12:00:01+00"],
}


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_in_its_order_with_null(kind: str) -> None:
    texts = TYPES[kind]
    shuffled = [*reversed(texts), None, *texts, texts[0], None]
    rows = ", ".join("(NULL)" if text is None else f"('{text.replace(chr(39), chr(39) * 2)}')" for text in shuffled)
    table = encode(f"SELECT CAST(v AS {kind}) AS v FROM (VALUES {rows}) AS t(v)")
    column = table.schema.coded[0]
    assert column.values == tuple(texts)
    assert column.has_null
    assert decoded(table) == shuffled
    for text in texts:  # the printed value is the value
        literal = f"CAST({sql_literal(text, column.type)} AS {kind})"
        row = connect().execute(f"SELECT CAST({literal} AS VARCHAR), typeof({literal})").fetchone()
        assert row == (text, kind)


def test_enumerations_and_uuids_are_their_strings() -> None:
    table = encode(
        "SELECT v::ENUM('b', 'a') AS e, '6ccd780c-baba-1026-9564-5b8c656024db'::UUID AS u "
        "FROM (VALUES ('b'), ('a')) t(v)"
    )
    assert [column.type for column in table.schema.coded] == ["VARCHAR", "VARCHAR"]
    assert table.schema.coded[0].values == ("a", "b")


def test_codes_are_as_small_as_they_can_be() -> None:
    table = encode("SELECT range % 256 AS a, range % 257 AS b, range % 2 AS c FROM range(1000)")
    assert [code.dtype for code in table.codes] == [np.uint8, np.uint16, np.uint8]
    assert table.matrix().dtype == np.int16
    assert table.matrix().shape == (1000, 3)


def test_rows_stay_together_and_in_order() -> None:
    table = encode(
        "SELECT range AS a, range * 2 % 37 AS b, CASE WHEN range % 5 > 0 THEN range % 11 END AS c FROM range(900)"
    )
    rows = list(zip(*(decoded(table, index) for index in range(3)), strict=True))
    assert rows == [(str(n), str(n * 2 % 37), str(n % 11) if n % 5 else None) for n in range(900)]


def test_one_value_and_all_null() -> None:
    table = encode("SELECT 1 AS one, NULL::INTEGER AS none FROM range(5)")
    assert table.schema.sizes == (1, 1)
    assert table.schema.coded[1].values == ()
    assert table.schema.coded[1].has_null


def test_odd_column_names() -> None:
    names = [
        "a b",
        'say "when"',
        "select",
        "naïve ☃",
        "x;y",
        "1st",
        "'",
        "value",
        "code",
        "rows",
        "place",
        "c0",
        "d0",
        "truth",
    ]
    quoted = ", ".join(f"range % 3 AS {chr(34)}{name.replace(chr(34), chr(34) * 2)}{chr(34)}" for name in names)
    assert [column.name for column in encode(f"SELECT {quoted} FROM range(9)").schema.coded] == names


def test_duplicate_column_names_are_told_apart() -> None:
    frame = pd.DataFrame([[1, 2, 3], [3, 4, 5]], columns=["a", "a", "A"])
    names = [column.name for column in Table.encode(frame).schema.coded]
    assert len({name.casefold() for name in names}) == 3


class TestLeavingOut:
    def test_nothing_is_left_out_for_its_values(self) -> None:
        sql = "SELECT range AS id, (range % 300)::DOUBLE / 7 AS x, range % 7 AS a FROM range(5000)"
        schema = encode(sql, max_distinct=100).schema
        assert not schema.left_out
        assert [column.grid is not None for column in schema.coded] == [True, True, False]
        assert [column.distinct for column in schema.coded] == [5000, 300, 7]

    def test_a_small_table_keeps_the_values_of_its_unique_columns(self) -> None:
        assert encode("SELECT range AS id FROM range(500)").schema.coded[0].grid is None

    def test_unsupported_types(self) -> None:
        table = encode("SELECT [1, 2] AS list, MAP {'a': 1} AS map, 'x'::BLOB AS blob, range AS a FROM range(3)")
        assert [column.name for column in table.schema.coded] == ["a"]
        assert all("not supported" in column.reason for column in table.schema.left_out)

    def test_chosen_columns(self) -> None:
        sql = "SELECT range AS a, range AS b, range AS c FROM range(3)"
        assert [column.name for column in encode(sql, columns=("C", "a")).schema.coded] == ["a", "c"]
        table = encode(sql, exclude=("b",))
        assert [column.name for column in table.schema.coded] == ["a", "c"]
        assert "excluded" in table.schema.left_out[0].reason

    def test_an_unknown_chosen_column(self) -> None:
        every = r'exclude names unknown columns: "colour" \(did you mean "color"\?\), "xyz"; the columns are'
        with pytest.raises(OptionError, match=every):
            encode("SELECT 1 AS color", exclude=("colour", "xyz"))
        with pytest.raises(OptionError, match=r'exclude names an unknown column "colour": did you mean "color"\?'):
            encode("SELECT 1 AS color", exclude=("colour",))

    def test_nothing_left(self) -> None:
        with pytest.raises(EmptyTableError, match=r"no column is left to model \(a: it was excluded"):
            encode("SELECT 1 AS a", exclude=("a",))

    def test_no_rows(self) -> None:
        with pytest.raises(EmptyTableError, match="the table has no rows"):
            encode("SELECT 1 AS a WHERE false")


class TestSources:
    EXPECTED = (("1", "2"), ("x", "y"))

    def check(self, source: Any) -> None:
        table = Table.encode(source)
        assert tuple(column.values for column in table.schema.coded) == self.EXPECTED
        assert table.rows == 2

    def test_frames(self) -> None:
        data = {"n": [1, 2], "s": ["x", "y"]}
        self.check(pd.DataFrame(data))
        self.check(pl.DataFrame(data))
        self.check(pa.table(data))
        self.check(duckdb.sql("SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS t(n, s)"))

    def test_a_relation_of_a_private_connection_is_left_clean(self) -> None:
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS t(n, s)")
        self.check(connection.table("t"))
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert (tables, views) == ([("t",)], [])

    @pytest.mark.parametrize("ending", ["csv", "parquet", "CSV", "csv.gz"])
    def test_files_and_globs(self, tmp_path: Path, ending: str) -> None:
        kind = "parquet" if ending == "parquet" else "csv"
        for number, letter in ((1, "x"), (2, "y")):
            connect().execute(
                f"COPY (SELECT {number} AS n, '{letter}' AS s) TO '{tmp_path}/part{number}.{ending}' (FORMAT {kind})"
            )
        self.check(f"{tmp_path}/part*.{ending}")
        assert Table.encode(tmp_path / f"part1.{ending}").rows == 1

    def test_a_path_with_a_quote(self, tmp_path: Path) -> None:
        path = tmp_path / "it's.csv"
        path.write_text("n,s\n1,x\n2,y\n")
        self.check(path)

    @pytest.mark.parametrize(
        ("name", "content", "phrase"),
        [
            ("missing.csv", None, "no such file: .*missing.csv; give the path of a file, .* shop.duckdb::orders"),
            ("there/missing.csv", None, "no such file: .*; the folder .*there does not exist"),
            ("missing*.csv", None, "no file matches"),
            ("table.xlsx", b"", "known endings are .*, and of databases .duckdb"),
            ("x.countless", b"PK", "x.countless is a Countless model, not a table"),
            ("broken.parquet", b"not parquet", "cannot read"),
        ],
    )
    def test_files_that_cannot_be_read(self, tmp_path: Path, name: str, content: bytes | None, phrase: str) -> None:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=phrase):
            Table.encode(str(tmp_path / name))

    def test_a_missing_file_that_has_nearly_the_same_name(self, tmp_path: Path) -> None:
        for name in ("orders.csv", "shop.duckdb", "model.countless"):
            (tmp_path / name).write_bytes(b"")
        for asked, meant in (
            ("oders.csv", "orders.csv"),
            ("orders.parquet", "orders.csv"),
            ("shp.duckdb", "shop.duckdb"),
        ):
            with pytest.raises(SourceError, match=rf"no such file: .*{asked}; did you mean .*{meant}\?"):
                Table.encode(str(tmp_path / asked))
        with pytest.raises(SourceError, match="give the path of a file"):
            Table.encode(str(tmp_path / "model.csv"))

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"is a directory: give a file, or a glob"):
            Table.encode(tmp_path)

    def test_not_a_table(self) -> None:
        with pytest.raises(SourceError, match="cannot read an object of type int as a table"):
            Table.encode(17)

    def test_a_csv_whose_rows_do_not_fit(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.csv"
        path.write_text("n\n" + "1\n" * 30_000 + "x\n")
        with pytest.raises(SourceError, match=r"DuckDB could not read the table|cannot read"):
            Table.encode(path)

    def test_counts(self) -> None:
        source = Source.open(pd.DataFrame({"n": range(100)}))
        assert source.counts([f"n < {k}" for k in range(100)], batch=7) == list(range(100))
        assert source.counts(["n < 5 -- a comment", "n >= 5"]) == [5, 95]


def test_frames_with_dates_and_missing_values() -> None:
    frame = pd.DataFrame({"d": [datetime.datetime(2020, 1, 2, 3, 4), None], "x": [math.nan, 1.5], "s": ["a", None]})
    table = Table.encode(frame)
    assert [column.has_null for column in table.schema.coded] == [True, True, True]
    assert table.schema.coded[0].values[0].startswith("2020-01-02 03:04:00")


@pytest.mark.parametrize("error", [duckdb.InterruptException("INTERRUPT"), RuntimeError("Query interrupted")])
def test_an_interrupted_query_is_an_interrupt(error: Exception) -> None:
    class Connection:
        def execute(self, sql: str) -> None:
            raise error

    with pytest.raises(KeyboardInterrupt):
        Source("t", Connection(), None).count()  # type: ignore[arg-type]


def test_the_fingerprint_tells_tables_apart() -> None:
    one, two, three = (encode(f"SELECT range % {k} AS a FROM range(50)") for k in (3, 3, 4))
    assert one.fingerprint == two.fingerprint != three.fingerprint


def test_rows_of_a_large_file_keep_their_order(tmp_path: Path) -> None:
    """Also across columns that are read apart: codes, and the strings of a text column."""
    rows = 400_000  # so many that several threads scan and join them
    path = tmp_path / "rows.parquet"
    columns = "(range * 7919 % 283)::INTEGER AS n, (range % 101)::VARCHAR AS t"
    connect().execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}'")
    table = Table.encode(path, EncodeOptions(text=("t",)))
    assert (column_codes(table)[0] == np.arange(rows) * 7919 % 283).all()
    digits = np.array([int(symbol) for symbol in table.schema.texts[0].characters])
    assert (digits[table.strings[0].symbols[:, 0]] == [int(str(row % 101)[0]) for row in range(rows)]).all()


def test_rows_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = encode("SELECT range % 3000 AS a, range % 7 AS b FROM range(9000)")
    expected = [np.bincount(table.matrix()[:, position]).tolist() for position in range(len(table.schema.sizes))]
    assert [counts[: len(own)].tolist() for counts, own in zip(table.symbol_counts, expected, strict=True)] == expected
    assert [counts.sum() for counts in table.counts] == [9000, 9000]
    monkeypatch.setattr(Table, "blocks", None)
    assert table.counts[1].tolist() == [1286, 1286, 1286, 1286, 1286, 1285, 1285]
    assert len(table.symbol_counts) == len(table.schema.sizes) == 3
