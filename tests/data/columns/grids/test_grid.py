"""A grid's cells: in order, of equal mass, heavy values alone; and the grid survives the file, or says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.arrays import IntArray
from countless.data.columns.digits import from_digits
from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import ModelFileError
from countless.options import EncodeOptions

KINDS = {
    "BIGINT": "(hash(range) % 100000)::BIGINT - 50000",
    "DOUBLE": "exp((hash(range) % 100000) / 9000.0) - 100",
    "FLOAT": "((hash(range) % 100000) / 7.0)::FLOAT",
    "DECIMAL(10,2)": "((hash(range) % 100000) / 100)::DECIMAL(10, 2)",
    "DATE": "DATE '1960-01-01' + (hash(range) % 40000)::INTEGER",
    "TIMESTAMP": "TIMESTAMP '1960-01-01' + INTERVAL (hash(range) % 2000000000) SECOND",
    "TIMESTAMP_NS": "(TIMESTAMP '1960-01-01' + INTERVAL (hash(range) % 2000000000) SECOND)::TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE": "(TIMESTAMP '1960-01-01' + INTERVAL (hash(range) % 2000000000) SECOND)::TIMESTAMPTZ",
    "TIME": "TIME '00:00:00' + INTERVAL (hash(range) % 86400) SECOND",
    "VARCHAR": "md5(range::VARCHAR)",
    "UUID": "md5(range::VARCHAR)::UUID",
}


def encoded(sql: str, **options: Any) -> tuple[Source, Table, IntArray]:
    """The source, the table, and the codes of its first column."""
    source = Source.open(connect().sql(sql))
    table = Table.encode(source, EncodeOptions(**options))
    digits = tuple(table.codes[position] for position in table.schema.positions(0))
    return source, table, from_digits(digits, table.schema.coded[0].radices)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_in_order_and_hold_as_many_rows(kind: str) -> None:
    source, table, codes = encoded(f"SELECT {KINDS[kind]} AS v FROM range(4000)", max_distinct=100, no_text=("v",))
    (column,) = table.schema.coded
    assert column.grid is not None
    assert column.grid.cells == column.size == 100
    assert column.distinct == source.rows(f"SELECT count(DISTINCT v) FROM {source.table}")[0][0]
    masses = np.bincount(codes)
    assert 36 <= masses.min() <= masses.max() <= 44
    values = source.rows(f"SELECT CAST(v AS VARCHAR), rank() OVER (ORDER BY v) FROM {source.table}")
    ranks = dict(values)
    texts = [text for (text,) in source.rows(f"SELECT CAST(v AS VARCHAR) FROM {source.table}")]
    by_rank = [code for _, code in sorted(zip((ranks[text] for text in texts), codes.tolist(), strict=True))]
    assert by_rank == sorted(by_rank)
    assert [ranks[knot] for knot in column.values] == sorted(ranks[knot] for knot in column.values)


def test_a_heavy_value_is_alone_and_null_is_last() -> None:
    sql = "SELECT CASE WHEN range % 10 = 0 THEN NULL WHEN range % 3 = 0 THEN 7000.5 ELSE range + 0.25 END AS v"
    source, table, codes = encoded(f"{sql} FROM range(20000)", max_distinct=50)
    (column,) = table.schema.coded
    grid = column.grid
    assert grid is not None
    heavy = next(cell for cell in range(grid.cells) if column.values[grid.starts[cell]] == "7000.50")
    assert grid.distinct[heavy] == 1
    assert np.bincount(codes)[heavy] == source.counts(["v = 7000.5"])[0]
    assert np.bincount(codes)[column.null] == source.counts(["v IS NULL"])[0]
    assert column.size == grid.cells + 1
    rest = np.delete(np.bincount(codes), [heavy, column.null])
    assert rest.max() < 1.6 * np.median(rest)


def test_what_is_beyond_all_numbers_is_alone() -> None:
    odd = "[-1e999, 1e999, 'nan'::DOUBLE][1 + range % 3]"
    _, table, _ = encoded(f"SELECT CASE WHEN range < 9 THEN {odd} ELSE range / 7 END AS v FROM range(5000)")
    (column,) = table.schema.coded
    assert column.grid is not None
    assert column.values[0] == "-inf"
    assert column.values[-2:] == ("inf", "nan")
    assert column.grid.distinct[0] == column.grid.distinct[-1] == column.grid.distinct[-2] == 1


def test_a_grid_is_two_digits_of_few_symbols() -> None:
    _, table, _ = encoded("SELECT range / 3 AS v FROM range(50000)")
    (column,) = table.schema.coded
    assert column.grid is not None
    assert column.grid.cells == 1024
    assert column.radices == (32, 32)
    assert len(column.values) == 9 * 1024


def test_values_that_need_quotes() -> None:
    _, table, codes = encoded("SELECT chr(39) || range || ' \"ß😀' AS v FROM range(3000)", no_text=("v",))
    assert table.schema.coded[0].grid is not None
    assert len(np.unique(codes)) == table.schema.coded[0].size


def test_rows_stay_together() -> None:
    _, table, codes = encoded("SELECT range / 3 AS v, range % 2 AS odd, range // 500 AS k FROM range(5000)")
    assert np.array_equal(table.codes[-1], np.arange(5000) // 500)
    assert np.array_equal(codes, np.sort(codes))


def test_near_the_limit_the_exact_count_decides() -> None:
    for distinct, expected in ((200, False), (201, True)):
        _, table, _ = encoded(f"SELECT range % {distinct} AS v FROM range(5000)", max_distinct=200)
        assert (table.schema.coded[0].grid is not None) is expected


def test_yes_and_no_are_never_a_grid() -> None:
    _, table, _ = encoded("SELECT range % 2 = 0 AS v FROM range(50)", max_distinct=1)
    assert table.schema.coded[0].grid is None


@st.composite
def grid_columns(draw: Any) -> Column:
    starts: list[int] = []
    shares: list[float] = []
    distinct: list[int] = []
    for inner in draw(st.lists(st.none() | st.lists(st.floats(0, 1), max_size=3), min_size=1, max_size=4)):
        starts.append(len(shares))
        shares += [0.0] if inner is None else [0.0, *sorted(inner), 1.0]
        distinct.append(1 if inner is None else len(inner) + 2 + draw(st.integers(0, 1000)))
    values = draw(st.lists(st.text(), min_size=len(shares), max_size=len(shares)))
    grid = Grid(tuple(starts), tuple(shares), tuple(distinct))
    return Column(draw(st.text()), "VARCHAR", tuple(values), draw(st.booleans()), grid=grid)


@given(st.lists(grid_columns(), min_size=1, max_size=3, unique_by=lambda column: column.name))
def test_round_trip(columns: list[Column]) -> None:
    schema = Schema(10**6, tuple(columns))
    assert Schema.from_json(schema.to_json()) == schema


GOOD = {"starts": [0, 3], "shares": [0.0, 0.5, 1.0, 0.0], "distinct": [5, 1]}


@pytest.mark.parametrize(
    "damage",
    [
        {"starts": [1, 3]},
        {"starts": [0, 0]},
        {"starts": [0, 4]},
        {"starts": [3, 0]},
        {"starts": []},
        {"starts": [0, 10**30]},
        {"starts": "ab"},
        {"starts": None},
        {"shares": [0.0, 0.5, 1.0]},
        {"shares": [0.0, 1.5, 1.0, 0.0]},
        {"shares": [0.0, -0.5, 1.0, 0.0]},
        {"shares": [0.0, float("nan"), 1.0, 0.0]},
        {"shares": [0.1, 0.5, 1.0, 0.0]},
        {"shares": [0.0, 0.5, 0.9, 0.0]},
        {"shares": [0.0, 0.5, 1.0, 1.0]},
        {"distinct": [2, 1]},
        {"distinct": [5, 0]},
        {"distinct": [5, 2]},
        {"distinct": [5]},
        {"distinct": [5, float("inf")]},
    ],
)
def test_a_damaged_grid(damage: dict[str, Any]) -> None:
    column = {"name": "a", "type": "INTEGER", "values": ["1", "2", "5", "6"], "has_null": False, "radices": [2]}
    schema = {"rows": 100, "columns": [column | {"grid": GOOD}], "texts": [], "left_out": [], "uuids": []}
    assert Schema.from_json(schema).columns[0].distinct == 6
    with pytest.raises(ModelFileError, match=r"damaged.* fit"):
        Schema.from_json({**schema, "columns": [column | {"grid": GOOD | damage}]})


@pytest.mark.parametrize("grid", [None, 3, [], {}])
def test_no_grid_at_all(grid: Any) -> None:
    column = {"name": "a", "type": "INTEGER", "values": ["1"], "has_null": False, "radices": [1], "grid": grid}
    with pytest.raises(ModelFileError, match="damaged"):
        Schema.from_json({"rows": 1, "columns": [column], "texts": [], "left_out": [], "uuids": []})
