"""Rows that are handed in, as codes of a schema: against the codes of the fitted table, and against DuckDB."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.encoding.recoding import MISSING, UNSEEN, Recoded, RecodedRows, opened
from countless.data.encoding.table import Table
from countless.data.sources.source import connect
from countless.errors import DataError
from countless.options import EncodeOptions
from tests.conftest import PEOPLE
from tests.exact import column_codes

SCHEMA = Schema(
    10,
    (
        Column("n", "TINYINT", ("1", "2", "5"), has_null=False),
        Column("Day", "DATE", ("2020-01-01", "2020-02-29"), has_null=True),
        Column("price", "DECIMAL(4,2)", ("0.10", "2.50"), has_null=False),
        Column("x", "DOUBLE", ("-1.5", "0.0", "nan"), has_null=False),
        Column("word", "VARCHAR", ("1", "it's", "a\nb"), has_null=False),
        Column("yes", "BOOLEAN", ("false", "true"), has_null=False),
        Column("at", "TIMESTAMP_S", ("2020-01-01 00:00:00", "2020-01-01 12:30:00"), has_null=False),
        TextColumn("t", "VARCHAR", "ab", 3, True, 9, (), (5, 5)),
    ),
)


def recode(rows: Any, schema: Schema = SCHEMA, size: int = 4_096, holes: bool = False) -> list[RecodedRows]:
    with Recoded(opened(rows, schema, holes), schema) as recoded:
        chunks = list(recoded.chunks(size))
        assert sum(map(len, chunks)) == recoded.rows
    return chunks


def codes(rows: Any, name: str, schema: Schema = SCHEMA) -> list[int]:
    """The codes of one column."""
    index = schema.find(name)
    return [code for some in recode(rows, schema) for code in some.codes[:, index].tolist()]


@pytest.mark.parametrize("max_distinct", [100_000, 20])
@pytest.mark.parametrize("size", [4_096, 7])
def test_the_fitted_table_has_its_own_codes(max_distinct: int, size: int) -> None:
    rows = connect().sql(f"SELECT * FROM ({PEOPLE}) LIMIT 500")
    table = Table.encode(rows, EncodeOptions(max_distinct=max_distinct))
    assert any(column.grid for column in table.schema.coded) == (max_distinct == 20)
    recoded = recode(rows, table.schema, size)
    assert [some.first for some in recoded] == list(range(0, 500, size))
    together = np.concatenate([some.codes for some in recoded])
    for index, (column, expected) in enumerate(zip(table.schema.coded, column_codes(table), strict=False)):
        nulls = np.concatenate([some.nulls for some in recoded])[:, index]
        np.testing.assert_array_equal(np.where(nulls, column.null, together[:, index]), expected)
        np.testing.assert_array_equal(nulls, together[:, index] == MISSING)


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "INTEGER": st.integers(-3, 3),
    "DOUBLE": st.sampled_from([-1.5, 0.0, -0.0, 0.1, 1e300, float("inf"), float("nan")]),
    "VARCHAR": st.text("ab'\"\\\n\x00é", max_size=3),
    "DATE": st.dates(datetime.date(1999, 12, 30), datetime.date(2000, 1, 3)),
    "DECIMAL(5,2)": st.integers(-200, 200).map(lambda number: Decimal(number) / 100),
    "TIMESTAMP": st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 1, 0, 0, 0, 5)),
    "BOOLEAN": st.booleans(),
}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_codes_are_those_that_duckdb_finds(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    fitted = data.draw(st.lists(KINDS[kind] | st.none(), min_size=1, max_size=8))
    recoded = data.draw(st.lists(KINDS[kind] | st.none(), min_size=1, max_size=8))
    connection = connect()
    for name, values in (("fitted", fitted), ("recoded", recoded)):
        connection.execute(
            f"CREATE TABLE {name} AS SELECT unnest(CAST($1 AS {kind}[])) AS v, unnest(range({len(values)})) AS i",
            [values],
        )
    (column,) = Table.encode(connection.sql("SELECT v FROM fitted")).schema.coded
    schema = Schema(len(fitted), (column,))
    truths = connection.execute(
        "SELECT i, v IS NULL, (SELECT count(DISTINCT k.v) FROM fitted AS k WHERE k.v < recoded.v), "
        "EXISTS (SELECT 1 FROM fitted AS k WHERE k.v = recoded.v) FROM recoded ORDER BY i"
    ).fetchall()
    expected = [MISSING if null else below if held else UNSEEN for _, null, below, held in truths]
    assert codes(connection.sql("SELECT v FROM recoded ORDER BY i"), "v", schema) == expected
    if kind != "TIMESTAMP":
        if "nan" not in column.values:  # then it is NULL
            expected = [MISSING if value != value else code for value, code in zip(recoded, expected, strict=True)]
        assert codes([{"V": value} for value in recoded], "v", schema) == expected


@pytest.mark.parametrize(
    ("sql", "name", "code"),
    [
        ("5.0::DOUBLE", "n", 2),
        ("'2'", "n", 1),
        ("2.4::DOUBLE", "n", UNSEEN),
        ("2.4::DECIMAL(3,1)", "n", UNSEEN),
        ("'2.4'", "n", UNSEEN),
        ("3", "n", UNSEEN),
        ("300", "n", UNSEEN),
        ("'300'", "n", UNSEEN),
        ("1e300::DOUBLE", "n", UNSEEN),
        ("true", "n", 0),
        ("NULL", "n", MISSING),
        ("TIMESTAMP '2020-02-29 00:00:00'", "Day", 1),
        ("TIMESTAMP '2020-02-29 12:00:00'", "Day", UNSEEN),
        ("'2020-02-29'", "Day", 1),
        ("DATE '2020-03-01'", "Day", UNSEEN),
        ("0.1::DOUBLE", "price", 0),
        ("0.101::DOUBLE", "price", UNSEEN),
        ("2.5::DECIMAL(10,4)", "price", 1),
        ("123456", "price", UNSEEN),
        ("0", "x", 1),
        ("-0.0::DOUBLE", "x", 1),
        ("'nan'::FLOAT", "x", 2),
        ("'-1.5'", "x", 0),
        ("1", "word", 0),
        ("'it''s'", "word", 1),
        ("'a' || chr(10) || 'b'", "word", 2),
        ("'it''s'::ENUM('it''s')", "word", 1),
        ("1", "yes", 1),
        ("'False'", "yes", 0),
        ("TIMESTAMP '2020-01-01 12:30:00'", "at", 1),
        ("TIMESTAMP '2020-01-01 12:30:00.5'", "at", UNSEEN),
        ("DATE '2020-01-01'", "at", 0),
    ],
)
def test_values_of_other_types(sql: str, name: str, code: int) -> None:
    assert codes(connect().sql(f'SELECT {sql} AS "{name}"'), name) == [code]


@pytest.mark.parametrize(
    ("sql", "name", "phrase"),
    [
        ("'many'", "n", "\"n\" has a value that is no TINYINT, as the model has it: 'many'"),
        ("DATE '2020-01-01'", "n", "no TINYINT"),
        ("[1, 2]", "x", "'[1, 2]'"),
        ("7", "Day", "no DATE"),
        ("TIME '12:00:00'", "at", "no TIMESTAMP_S"),
        ("'maybe'", "yes", "no BOOLEAN"),
        ("repeat('z', 100)", "Day", "z…'"),
    ],
)
def test_values_that_cannot_be_read(sql: str, name: str, phrase: str) -> None:
    with pytest.raises(DataError) as caught:
        recode(connect().sql(f'SELECT {sql} AS "{name}"'))
    assert phrase in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_and_columns_that_are_not_there() -> None:
    rows = pd.DataFrame({"DAY": ["2020-01-01", None], "place": [1, 2], "other": [[1], [2]], "T": ["ab", None]})
    (recoded,) = recode(rows)
    day = SCHEMA.find("day")
    assert recoded.codes[:, day].tolist() == [0, MISSING]
    assert recoded.nulls[:, day].tolist() == [False, True]
    others = np.arange(len(SCHEMA.coded)) != day
    assert (recoded.codes[:, others] == MISSING).all()
    assert not recoded.nulls[:, others].any()
    assert recoded.texts == (["ab", None],)
    (recoded,) = recode({"n": 1})
    assert recoded.texts == (None,)
    with pytest.raises(DataError, match="no column of the model: it has a; the model has n, Day"):
        recode({"a": 1})


def test_dictionaries() -> None:
    rows = [{"n": np.int64(5), "price": Decimal("2.50")}, {"word": "it's", "n": "2"}, {"n": None, "yes": True}]
    (recoded,) = recode(rows, holes=True)
    assert recoded.codes[:, [0, 2, 4, 5]].tolist() == [
        [2, 1, MISSING, MISSING],
        [1, MISSING, 1, MISSING],
        [MISSING] * 3 + [1],
    ]
    assert recoded.nulls[:, 0].tolist() == [False, False, True]
    with pytest.raises(DataError, match="no rows"):
        recode([])
    with pytest.raises(DataError, match="rows without columns"):
        recode({})


def test_dictionaries_have_the_same_keys() -> None:
    rows = [{"n": 1, "mine": 3, "T": "a"}, {"n": 1, "T": "b"}, {"n": 2}]
    with pytest.raises(DataError, match=r'^row 2 has no "T": give every row the same keys, None for NULL$'):
        recode(rows)
    assert codes(rows[:2], "n") == [0, 0]


def test_nan_is_null_unless_it_is_a_value() -> None:
    nan = float("nan")
    frame = pd.DataFrame({"n": [1, None], "x": [0.0, nan], "word": ["it's", nan], "mine": ["a", nan]})
    for row in ({"n": nan}, {"word": nan}, {"n": np.float64("nan")}):
        (recoded,) = recode([row])
        assert recoded.nulls.sum() == 1
    rows = frame.to_dict("records")
    assert [codes(rows, name) for name in ("n", "x", "word")] == [[0, MISSING], [1, 2], [1, MISSING]]
    without = Schema(10, (Column("x", "DOUBLE", ("0.0",), has_null=False),))
    assert codes(rows, "x", without) == [0, MISSING]


@pytest.mark.parametrize(
    ("rows", "phrase"),
    [
        (pd.DataFrame(), "a table without columns: give .* a dictionary, or a list of dictionaries"),
        (pd.Series({"n": 1}), r"a Series has no column names: give a dictionary \(for one row, series.to_dict\(\)\)"),
        ((1, "x"), "an object of type tuple: give .* a dictionary, or a list of dictionaries"),
        ([[1, 2]], "an object of type list: give .* a dictionary, or a list of dictionaries"),
    ],
)
def test_what_is_no_table(rows: Any, phrase: str) -> None:
    with pytest.raises(DataError, match=phrase) as caught:
        recode(rows)
    assert "\n" not in str(caught.value)


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.touch()
    with pytest.raises(DataError, match=r"rows\.csv is empty"):
        recode(path)


def test_few_rows_and_many_values_stay_in_order() -> None:
    schema = Schema(10, (Column("k", "INTEGER", tuple(map(str, range(50_000))), has_null=False),))
    values = np.random.default_rng(0).permutation(50_000)[:3_000]
    assert codes(pd.DataFrame({"k": values}), "k", schema) == values.tolist()


def test_between_the_cells_of_a_grid() -> None:
    # 0 alone, 10 to 20, 30 and 40 alone, 50 to 60
    grid = Grid((0, 1, 3, 4, 5), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (1, 5, 1, 1, 5))
    column = Column("x", "INTEGER", ("0", "10", "20", "30", "40", "50", "60"), has_null=True, grid=grid)
    schema = Schema(10, (column,))
    expected = {
        -1: UNSEEN,
        0: 0,
        5: 1,  # what is not 0 but before 10 is rather like 10
        10: 1,
        15: 1,
        25: 1,
        30: 2,
        35: UNSEEN,
        40: 3,
        45: 4,
        60: 4,
        61: UNSEEN,
        None: MISSING,
    }
    assert codes([{"x": value} for value in expected], "x", schema) == list(expected.values())


def test_nothing_is_left_behind() -> None:
    connection = connect()
    source = opened(connection.sql("SELECT 1 AS n"), SCHEMA)
    with Recoded(source, SCHEMA):
        assert len(connection.sql("SHOW TABLES").fetchall()) == 1
    assert connection.sql("SHOW TABLES").fetchall() == []
