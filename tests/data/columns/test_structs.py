"""Structs become columns of their fields, whatever kind of source they are in, and however the table is encoded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from countless.cluster.rows import ParquetRows, reader
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import codes_fingerprint, encode_mapped
from countless.data.encoding.recoding import Recoded, opened
from countless.data.encoding.table import EXCLUDED, Table
from countless.data.sources.source import Source, connect
from countless.errors import DataError, OptionError
from countless.options import EncodeOptions

ROWS = """
SELECT
    range % 5 AS n,
    CASE WHEN range % 7 > 0 THEN {
        'city': ['Oslo', 'Rome', 'Bonn'][1 + range % 3],
        'zip': CASE WHEN range % 4 > 0 THEN range % 11 END,
        'geo': {'lat': range % 3 / 2, 'lon': range % 2},
        'tags': [range]
    } END AS address,
    [range] AS list
FROM range(300)
"""
PLAIN = """
SELECT n, address.city AS "address.city", address.zip AS "address.zip", address.geo.lat AS "address.geo.lat",
    address.geo.lon AS "address.geo.lon"
"""
FLAT = ["n", "address.city", "address.zip", "address.geo.lat", "address.geo.lon", "address.tags", "list"]


def parquet(folder: Path) -> Any:
    connect().execute(f"COPY ({ROWS}) TO '{folder / 't.parquet'}' (ROW_GROUP_SIZE 2048)")
    return folder / "t.parquet"


def json_lines(folder: Path) -> Any:
    connect().execute(f"COPY ({ROWS}) TO '{folder / 't.jsonl'}' (FORMAT json)")
    return folder / "t.jsonl"


def database(folder: Path) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS {ROWS}")
    return folder / "t.duckdb"


def relation(folder: Path) -> Any:
    return duckdb.sql(ROWS)


def arrow(folder: Path) -> Any:
    return relation(folder).to_arrow_table()


def polars_frame(folder: Path) -> Any:
    return relation(folder).pl()


def pandas_frame(folder: Path) -> Any:
    return relation(folder).df()


@pytest.mark.parametrize("made", [parquet, json_lines, database, relation, arrow, polars_frame, pandas_frame])
def test_every_source_has_columns_of_fields(made: Any, tmp_path: Path) -> None:
    source = Source.open(made(tmp_path))
    assert [name for name, _ in source.columns()] == FLAT
    names = ", ".join(f'"{name}"' for name in FLAT[:5])
    rows = source.rows(f"SELECT {names} FROM {source.table}")
    assert Counter(rows) == Counter(connect().execute(f"{PLAIN} FROM ({ROWS})").fetchall())
    clause = '"address.city" = \'Oslo\' AND "address.zip" > 3 OR "address.geo.lat" IS NULL'
    truth = "address.city = 'Oslo' AND address.zip > 3 OR address.geo.lat IS NULL"
    assert source.counts([clause]) == [len(connect().execute(f"FROM ({ROWS}) WHERE {truth}").fetchall())]


def test_a_null_struct_has_null_fields_whatever_is_below_it() -> None:
    struct = pa.StructArray.from_arrays([pa.array([1, 2, 3])], names=["a"], mask=pa.array([False, True, False]))
    source = Source.open(pa.table({"s": struct}))
    assert source.rows(f'SELECT "s.a" FROM {source.table}') == [(1,), (None,), (3,)]


def test_fields_in_stored_types() -> None:
    source = Source.open(duckdb.sql("SELECT {'key': uuid(), 'level': 'low'::ENUM('low', 'high')} AS s"))
    assert source.columns() == [("s.key", "VARCHAR"), ("s.level", "VARCHAR")]


def test_odd_names() -> None:
    source = Source.open(duckdb.sql("""SELECT {'say "when"': 1, 'it''s': 2, 'a.b': {'c': 3}} AS "the ☃ column" """))
    names = ['the ☃ column.say "when"', "the ☃ column.it's", "the ☃ column.a.b.c"]
    assert [name for name, _ in source.columns()] == names
    assert source.rows(f"SELECT * FROM {source.table}") == [(1, 2, 3)]


def names(schema: Any) -> list[str]:
    return [column.name for column in schema.columns]


def reasons(schema: Any) -> dict[str, str]:
    return {column.name: column.reason for column in schema.left_out}


class TestDepth:
    def test_one_level_by_default(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS)).schema
        assert names(schema) == ["n", "address.city", "address.zip"]
        assert reasons(schema) == {
            "address.geo": "it is a struct: --flatten 2 makes columns of its fields",
            "address.tags": "columns of type BIGINT[] are not supported",
            "list": "columns of type BIGINT[] are not supported",
        }

    def test_more_levels(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(flatten=2)).schema
        assert names(schema) == FLAT[:5]
        assert set(reasons(schema)) == {"address.tags", "list"}

    def test_none(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(flatten=0)).schema
        assert names(schema) == ["n"]
        assert reasons(schema)["address"] == "it is a struct: --flatten 1 makes columns of its fields"

    def test_less_than_none(self) -> None:
        with pytest.raises(OptionError, match="flatten must be at least 0, not -1"):
            EncodeOptions(flatten=-1)

    def test_codes_of_another_depth_are_others(self) -> None:
        source = Source.open(duckdb.sql(ROWS), flatten=1)
        one, two = (codes_fingerprint(source, EncodeOptions(flatten=depth), 0) for depth in (1, 2))
        assert one != two


class TestChoosing:
    def test_a_struct_stands_for_its_fields(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(columns=("Address",), flatten=2)).schema
        assert names(schema) == FLAT[1:5]
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(exclude=("address",))).schema
        assert names(schema) == ["n"]
        assert reasons(schema)["address.city"] == EXCLUDED

    def test_a_field(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(columns=("n", "address.ZIP"))).schema
        assert names(schema) == ["n", "address.zip"]
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(exclude=("address.zip",))).schema
        assert names(schema) == ["n", "address.city"]

    def test_a_struct_in_a_struct(self) -> None:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(columns=("address.geo",), flatten=2)).schema
        assert names(schema) == ["address.geo.lat", "address.geo.lon"]

    def test_an_unknown_field(self) -> None:
        with pytest.raises(OptionError, match=r'unknown column "address.cty": did you mean "address.city"\?'):
            Table.encode(duckdb.sql(ROWS), EncodeOptions(exclude=("address.cty",)))


class TestNamesThatCollide:
    def test_a_column_goes_before_a_struct(self) -> None:
        sql = """SELECT {'City': range, 'zip': 5} AS address, 10 + range AS "address.city" FROM range(9)"""
        table = Table.encode(duckdb.sql(sql))
        assert names(table.schema) == ["address.city"]
        assert table.schema.coded[0].values[0] == "10"
        assert reasons(table.schema) == {
            "address": 'its field "City" would be called "address.City", as another column is: rename one of them'
        }
        renamed = Table.encode(duckdb.sql(f'SELECT * RENAME ("address.city" AS town) FROM ({sql})'))
        assert names(renamed.schema) == ["address.City", "address.zip", "town"]

    def test_fields_that_differ_in_case(self) -> None:
        struct = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["x", "y"])], names=["a", "A"])
        schema = Table.encode(pa.table({"s": struct, "n": [1, 2]})).schema
        assert names(schema) == ["n"]
        assert reasons(schema) == {"s": 'its fields "a" and "A" differ in case only: rename one of them'}

    def test_two_structs(self) -> None:
        sql = """SELECT {'b.c': range} AS a, {'c': -range} AS "a.b", range AS n FROM range(9)"""
        schema = Table.encode(duckdb.sql(sql)).schema
        assert names(schema) == ["a.b.c", "n"]
        assert "as another column is" in reasons(schema)["a.b"]

    def test_deeper_ones_leave_the_others_as_they_were(self) -> None:
        """Whoever opens the table of a model flattens all levels: that must not change what a fit has seen."""
        rows = duckdb.sql("""SELECT {'b': {'c': 1}, 'd': 2} AS a, 3 AS "a.b.c" """)
        for depth, names_then in ((1, ["a.b", "a.d", "a.b.c"]), (None, ["a.b", "a.d", "a.b.c"])):
            source = Source.open(rows, flatten=depth)
            assert [name for name, _ in source.columns()] == names_then
        assert source.rows(f'SELECT "a.d", "a.b.c" FROM {source.table}') == [(2, 3)]


def test_a_source_that_is_open_stays_as_it_is() -> None:
    source = Source.open(duckdb.sql(ROWS), flatten=0)
    assert Source.open(source, flatten=2) is source
    assert [name for name, _ in source.columns()] == ["n", "address", "list"]


def test_in_files_as_in_memory(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    whole = Table.encode(path, EncodeOptions(flatten=2))
    source = Source.open(path, flatten=2)
    mapped = encode_mapped(source, EncodeOptions(flatten=2), tmp_path / "codes", Memory(10**9))
    assert mapped.schema == whole.schema
    rows = [Counter(map(tuple, np.stack(table.codes, axis=1).tolist())) for table in (whole, mapped)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("columns", [FLAT[:3], FLAT[3:5], ["address.geo.lon", "n"]])
def test_machines_of_a_cluster_read_the_same(columns: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = arrow(tmp_path)
    pq.write_table(rows, path, row_group_size=70)
    table = reader(ParquetRows((str(path),), (300,)).between(60, 200), columns).read_all()
    source = Source.open(rows)
    selected = ", ".join(f'"{name}"' for name in columns)
    truth = source.rows(f"SELECT {selected} FROM {source.table} LIMIT 140 OFFSET 60")
    assert [tuple(row.values()) for row in table.to_pylist()] == truth


class TestRowsAsDictionaries:
    def codes(self, rows: Any) -> list[list[int]]:
        schema = Table.encode(duckdb.sql(ROWS), EncodeOptions(flatten=2)).schema
        with Recoded(opened(rows, schema), schema) as recoded:
            (chunk,) = recoded.chunks()
        codes: list[list[int]] = chunk.codes.tolist()
        return codes

    def test_structs_are_dictionaries(self) -> None:
        nested = {"n": 1, "address": {"city": "Oslo", "zip": 3, "geo": {"lat": 0.5, "lon": 1}}}
        flat = {"n": 1, "address.city": "Oslo", "address.zip": 3, "address.geo.lat": 0.5, "address.geo.lon": 1}
        assert self.codes([nested]) == self.codes([flat])

    def test_a_struct_that_is_none(self) -> None:
        rows: list[dict[str, Any]] = [
            {"n": 1, "address": None},
            {"n": 1, "address": {"city": "Oslo", "zip": 3, "geo": None}},
        ]
        flat = [dict.fromkeys(FLAT[:5]) | row for row in ({"n": 1}, {"n": 1, "address.city": "Oslo", "address.zip": 3})]
        assert self.codes(rows) == self.codes(flat)
        assert self.codes([rows[0] | {"address": float("nan")}]) == self.codes(flat[:1])  # as pandas has it

    def test_a_field_that_is_missing(self) -> None:
        rows = [{"n": 1, "address": {"city": "Oslo", "zip": 3}}, {"n": 1, "address": {"city": "Oslo"}}]
        with pytest.raises(DataError, match=r'row 1 has no "address.zip": give every row the same keys'):
            self.codes(rows)
