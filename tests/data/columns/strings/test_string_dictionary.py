"""Codes of strings rest on the strings alone: in memory, in a folder, and as the machines of a cluster write them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countless.cluster import domains
from countless.cluster.domains import MergedScans
from countless.cluster.encoding import write_chunk, write_part
from countless.cluster.rows import ParquetRows
from countless.data.encoding.code_files import CodesFolder
from countless.data.encoding.encoder import Encoder
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import encode_mapped, mapped_table
from countless.data.encoding.table import Table, find_schema, read_schema
from countless.data.sources.source import Source, connect
from countless.errors import DataError
from countless.options import EncodeOptions
from tests.exact import column_codes

# Of these strings DuckDB's hash gives many the same number.
ORDERS = """
SELECT CASE WHEN range % 50 > 0
    THEN 'Order ' || range * 7919 % 300 || ' of customer ' || range * 104729 % 30 END AS item,
    range % 7 AS week
FROM range(20000)
"""
AWKWARD = st.text(st.sampled_from("\0\x01\t\n\"'\\%,{}aAéå e\u0301\u030a\u200d\ufeff\U0001f600ß日\u0000"), max_size=9)


def decoded(table: Table, index: int = 0) -> list[str | None]:
    """The values of a column, row by row."""
    values = [*table.schema.coded[index].values, None]
    return [values[code] for code in column_codes(table)[index]]


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("orders") / "orders.parquet"
    connect().execute(f"COPY ({ORDERS}) TO '{path}' (ROW_GROUP_SIZE 4096)")
    return path


@pytest.fixture(scope="module")
def items(orders: Path) -> list[str | None]:
    return [item for (item,) in connect().execute(f"SELECT item FROM '{orders}'").fetchall()]


class Small(Memory):
    """So little memory that a few thousand rows fill a block."""

    @property
    def block(self) -> int:
        return 20_000


def test_in_memory(orders: Path, items: list[str | None]) -> None:
    assert decoded(Table.encode(orders)) == items


def test_in_a_folder(orders: Path, items: list[str | None], tmp_path: Path) -> None:
    table = encode_mapped(Source.open(orders), EncodeOptions(), tmp_path / "codes", Small(10**9))
    assert Counter(decoded(table)) == Counter(items)


def test_on_a_cluster(orders: Path, items: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that every machine runs, here."""
    monkeypatch.setattr(domains, "PIECE_ROWS", 3_000)
    rows, source = ParquetRows((str(orders),), (len(items),)), Source.open(orders)
    finder = MergedScans(source, rows, lambda function, indexes: map(function, indexes), 1 << 16)
    schema = find_schema(finder, EncodeOptions(), lambda stage, rows=None: None)
    folder = CodesFolder.create(tmp_path / "codes", schema, "", Small(10**9).block)
    for index in folder.missing_chunks():
        write_chunk(str(folder.path), rows, index)
    for index in range(folder.parts):
        write_part(str(folder.path), index)
    assert Counter(decoded(mapped_table(folder, Small(10**9)))) == Counter(items)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.none() | AWKWARD, min_size=1, max_size=30))
def test_awkward_strings_come_back(texts: list[str | None]) -> None:
    table = Table.encode(pa.table({"t": pa.array(texts, pa.string())}))
    assert decoded(table) == texts


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "DECIMAL(38,3)", "DECIMAL(20,0)"])
@pytest.mark.parametrize("factor", [1, 10**14], ids=["short", "long"])
def test_long_numbers_come_back(kind: str, factor: int) -> None:
    numbers = f"(range * 7919 % 500)::{kind} * {factor}"
    table = Table.encode(connect().sql(f"SELECT CAST({numbers} AS {kind}) AS n FROM range(2000)"))
    expected = connect().execute(f"SELECT CAST(CAST({numbers} AS {kind}) AS VARCHAR) FROM range(2000)").fetchall()
    assert decoded(table) == [text for (text,) in expected]


def test_a_relation_is_left_without_types(orders: Path) -> None:
    connection = duckdb.connect()
    batches = Encoder(source := Source.open(connection.sql(f"FROM '{orders}'")), read_schema(source)).batches()
    next(batches)
    batches.close()
    Table.encode(connection.sql(f"FROM '{orders}'"))
    assert connection.execute("SELECT type_name FROM duckdb_types() WHERE NOT internal").fetchall() == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'a'", "'b'"),
        ("'Order 159 of customer 10'", "'Order 179 of customer 12'"),
        ("'a'", "NULL::VARCHAR"),
        ("NULL::VARCHAR", "'a'"),
        ("1", "2"),
        ("1", "NULL::INTEGER"),
        ("NULL::INTEGER", "1"),
        ("7::HUGEINT << 70", "NULL::HUGEINT"),
    ],
)
def test_a_value_that_came_later(before: str, after: str) -> None:
    schema = read_schema(Source.open(connect().sql(f"SELECT {before} AS v")))
    with pytest.raises(DataError, match="the table changed while it was read"):
        list(Encoder(Source.open(connect().sql(f"SELECT {after} AS v")), schema).batches())


def test_a_null_that_came_later_to_a_grid() -> None:
    value = "CASE WHEN range % 2 = 0 THEN 'word ' || range END"
    options = EncodeOptions(max_distinct=100, no_text=("v",))
    schema = read_schema(Source.open(connect().sql(f"SELECT coalesce({value}, 'x') AS v FROM range(3000)")), options)
    later = Source.open(connect().sql(f"SELECT {value} AS v FROM range(3000)"))
    with pytest.raises(DataError, match="the table changed while it was read"):
        list(Encoder(later, schema).batches())


def test_the_fingerprint_rests_on_more_than_one_hash() -> None:
    one, two = (
        Source.open(duckdb.sql(f"SELECT 'Order {order}' AS item, 1 AS n")).fingerprint()
        for order in ("159 of customer 10", "179 of customer 12")
    )
    assert one != two
