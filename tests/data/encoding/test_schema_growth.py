"""Schemas that grow: every old value keeps its place in the order, and every new row gets codes."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.schema import Schema
from countless.data.encoding.schema_growth import MOST_SYMBOLS, NEW, conformed, encoded, grown
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import DataError, EmptyTableError
from countless.options import EncodeOptions
from tests.exact import column_codes

values = st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=30)


def table(**columns: list[object]) -> duckdb.DuckDBPyRelation:
    """A table of some columns of numbers or strings."""
    connection = connect()
    kinds = {name: "VARCHAR" if any(isinstance(v, str) for v in own) else "INTEGER" for name, own in columns.items()}
    selected = ", ".join(f"unnest(${index}::{kinds[name]}[]) AS {name}" for index, name in enumerate(columns, 1))
    return connection.sql(f"SELECT {selected}", params=list(columns.values()))


def numbers(select: str) -> Source:
    return Source.open(connect().sql(select))


@settings(deadline=None, max_examples=40)
@given(values, values)
def test_values_keep_their_order_and_old_ones_their_codes(old: list[int | None], new: list[int | None]) -> None:
    before = Table.encode(table(a=list(old))).schema
    growth = grown(before, conformed(Source.open(table(a=list(new))), before))
    column, was = growth.schema.coded[0], before.coded[0]
    every = sorted({value for value in (*old, *new) if value is not None})
    assert column.values == tuple(map(str, every))
    assert column.has_null == (None in old or None in new)
    assert growth.schema.rows == len(old) + len(new)
    for code, origin in enumerate(growth.origins[0].tolist()):
        if origin == NEW:
            assert code == column.null or column.values[code] not in was.values
        elif origin == was.null:
            assert code == column.null
        else:
            assert column.values[code] == was.values[origin]
    codes = encoded(conformed(Source.open(table(a=list(new))), before), growth.schema).codes[0]
    assert [None if code == column.null else int(column.values[code]) for code in codes] == new
    assert Schema.from_json(growth.schema.to_json()) == growth.schema


def test_rows_of_old_symbols_move_to_their_new_codes() -> None:
    before = Table.encode(numbers("SELECT range * 3 AS a, range % 2 AS b FROM range(2500)"), EncodeOptions())
    assert len(before.schema.coded[0].radices) > 1  # written in digits
    rows = conformed(numbers("SELECT range * 3 + 1 AS a, 7 AS b FROM range(90)"), before.schema)
    growth = grown(before.schema, rows)
    moved = growth.moved(np.stack([code.astype(np.int64) for code in before.codes], axis=1))
    again = Table(growth.schema, tuple(moved.T))
    after = growth.schema.coded[0]
    if after.grid is None:
        assert [int(after.values[code]) for code in column_codes(again)[0]] == [3 * index for index in range(2500)]
    assert column_codes(again)[1].max() == 1


def test_a_grid_gets_cells_for_what_lies_beyond_its_ends() -> None:
    before = Table.encode(numbers("SELECT sqrt(range + 1000) AS x FROM range(20000)")).schema
    grid = before.coded[0].grid
    assert grid is not None
    rows = conformed(numbers("SELECT CASE WHEN range % 9 > 0 THEN range * 0.1 END AS x FROM range(6000)"), before)
    growth = grown(before, rows)
    column = growth.schema.coded[0]
    assert column.grid is not None
    old = growth.origins[0][growth.origins[0] != NEW]
    assert old.tolist() == list(range(grid.cells))
    assert float(column.values[0]) == pytest.approx(0.1)
    assert float(column.values[-1]) == pytest.approx(599.9)
    assert column.has_null
    assert Schema.from_json(growth.schema.to_json()) == growth.schema
    codes = column_codes(encoded(rows, growth.schema))[0]
    assert (codes == column.null).sum() == 667
    assert np.bincount(codes, minlength=column.size)[growth.origins[0] == NEW].min() > 0


@pytest.mark.parametrize(
    ("new", "step"),
    [("(range * 11) * 50", "50"), ("range * 50 + 10", "10"), ("7777777", "1"), ("NULL::BIGINT", "50")],
)
def test_the_granularity_of_a_grid_follows_the_new_rows(new: str, step: str) -> None:
    before = Table.encode(numbers("SELECT (hash(range) % 100000)::BIGINT * 50 AS x FROM range(20000)")).schema
    after = grown(before, conformed(numbers(f"SELECT {new} AS x FROM range(300)"), before)).schema.coded[0]
    assert after.grid is not None
    assert after.grid.granularity == Granularity(Fraction(step))


def test_shares_within_a_cell_follow_the_new_rows() -> None:
    before = Table.encode(numbers("SELECT range * 1.0 AS x FROM range(4000)"), EncodeOptions(max_distinct=1)).schema
    rows = conformed(numbers("SELECT 1.0 AS x FROM range(4000)"), before)
    column, after = before.coded[0], grown(before, rows).schema.coded[0]
    assert column.grid is not None
    assert after.grid is not None
    assert column.grid.cells == after.grid.cells == 1
    middle = len(column.values) // 2
    assert after.grid.shares[middle] == pytest.approx((1 + column.grid.shares[middle]) / 2, abs=0.01)


def test_text_keeps_its_alphabet_and_counts_on() -> None:
    words = ["abab", "ba", "aabb", "bbbbaa"] * 300
    before = Table.encode(table(t=list(words)), EncodeOptions(text=("t",))).schema
    new = [None, "abé", "aaaaaaaaaa", "ab", "ab", "ba", "b"] * 5
    growth = grown(before, conformed(Source.open(table(t=list(new))), before))
    (old_text,), (text,) = before.texts, growth.schema.texts
    assert (text.characters, text.length, text.has_null) == ("ab", old_text.length, True)
    assert dict(text.rare)["é"] == 5
    assert text.cut == old_text.cut + 5
    assert sum(text.frequencies) == sum(old_text.frequencies) + 5 * (2 + 10 + 7)  # of whole strings
    assert Schema.from_json(growth.schema.to_json()) == growth.schema


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT 1 AS other", "lack the model's columns a, b"),
        ("SELECT 1 AS a, 'x' AS b WHERE FALSE", "no new rows"),
        ("SELECT 2.5 AS a, 'x' AS b", "no INTEGER.*2.5.*fit the whole table again"),
        ("SELECT 'much' AS a, 'x' AS b", "is VARCHAR in the table and INTEGER in the model"),
        (
            f"SELECT range::INTEGER AS a, 'x' AS b FROM range({MOST_SYMBOLS + 5})",
            '"a" grows from 2 codes to .* at most 4,000 have a',
        ),
    ],
)
def test_what_does_not_fit_is_refused(rows: str, message: str) -> None:
    before = Table.encode(table(a=[1, 2], b=["x", "y"])).schema
    with pytest.raises((DataError, EmptyTableError), match=message):
        grown(before, conformed(numbers(rows), before))


def test_another_alphabet_is_refused() -> None:
    before = Table.encode(table(t=["abab", "ba", "aabb"] * 300), EncodeOptions(text=("t",))).schema
    with pytest.raises(DataError, match="not in its alphabet: fit the whole table again"):
        grown(before, conformed(Source.open(table(t=["xyz", "zzz"])), before))
    with pytest.raises(DataError, match="longer than the"):
        grown(before, conformed(Source.open(table(t=["ab" * 50])), before))


def test_a_negative_zero_among_new_rows_is_remembered() -> None:
    schema = Table.encode(numbers("SELECT unnest([0.0, 1.5])::DOUBLE AS n")).schema
    assert schema.signed == ()
    with_zero = grown(schema, numbers("SELECT '-0.0'::DOUBLE AS n")).schema
    assert with_zero.signed == ("n",)
    assert grown(with_zero, numbers("SELECT 2.5::DOUBLE AS n")).schema.signed == ("n",)
    assert Schema.from_json(with_zero.to_json()) == with_zero
