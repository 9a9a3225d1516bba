"""Calendar functions of wide timestamps: the codes of hidden columns, and clauses about them, are DuckDB's."""

from __future__ import annotations

import numpy as np
import pytest

from countless.data.columns.calendar import PARTS, CalendarPart
from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source, connect
from countless.errors import ModelFileError
from countless.estimator.answers.evidence import Evidence
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.workload import count_codes

TABLE = """
SELECT
    CASE WHEN range % 50 > 0 THEN TIMESTAMP '1968-11-05 07:30:00' + to_seconds(hash(range) % 120000000) END AS ts,
    (hash(range, 1) % 7)::INTEGER AS small,
    DATE '2020-01-30' + (hash(range, 2) % 2600)::INTEGER AS day,
    TIMESTAMP '2021-02-03 04:05:06' + to_minutes((hash(range, 3) % 100000)::INTEGER) AS late
FROM range(6000)
"""
BY_PARTS = [
    "hour(ts) = 3",
    "ts IS NOT NULL AND hour(ts) NOT BETWEEN 8 AND 17",
    "extract(dow FROM ts) IN (0, 6) AND small < 3",
    "date_part('isodow', ts) > 5 OR small = 2",
    "NOT (dayofweek(ts) = 2 AND month(ts) = 4)",
    "weekday(ts) = 1 AND quarter(ts) <> 2 AND year(ts) < 1971",
    "monthname(ts) LIKE 'J%' AND dayname(ts) = 'Monday'",
    "hour(ts) IS NULL",
    "datepart('hour', ts) % 6 = 1 AND EXTRACT('year' FROM ts) = 1970",
    "date_trunc('month', ts) = '1970-03-01'",
    "date_trunc('month', ts) <> DATE '1970-03-01' AND small = 1",
    "date_trunc('month', ts) IN ('1969-03-01', TIMESTAMP '1970-12-01') AND hour(ts) < 12",
    "hour(late) = 5 AND small > 2",
    "month(day) = 2 AND year(day) = 2024",
]
OF_UNITS = [
    "ts::DATE = '1970-05-17'",
    "date_trunc('day', ts) BETWEEN '1970-05-17' AND '1970-05-20'",
    "date_trunc('year', ts) >= '1970-01-01' AND hour(ts) = 22",
    "DATE '1970-05-17' < CAST(ts AS DATE)",
    "date_trunc('quarter', ts) <= '1969-10-01'",
    "date_trunc('month', ts) > '1970-02-01'",
    "date_trunc('hour', ts) < '1970-01-01 13:00:00'",
    "NOT date(ts) IN ('1970-05-17', '1970-05-18')",
    "date_trunc('month', day) < '2022-02-01'",
    "date_trunc('day', ts) = '1970-05-17 12:00:00'",
    "ts > '1970-02-03' AND hour(ts) BETWEEN 2 AND 4 AND small <> 5",
    "hour(ts) + month(ts) = 9",
    "hour(ts) > small",
]


class World:
    """A table, its codes, and its rows as evidence: ``max_distinct`` decides which columns have a grid."""

    def __init__(self, max_distinct: int) -> None:
        self.source = Source.open(connect().sql(TABLE))
        self.table = Table.encode(self.source, EncodeOptions(max_distinct=max_distinct))
        self.schema = self.table.schema
        rows = EvidenceRows.drawn(self.source, self.schema, 6000, 0)
        self.evidence = Evidence(self.schema, rows)
        self.compiler = Compiler(self.schema, rows)

    def truth(self, where: str) -> int:
        return self.source.counts([where])[0]


@pytest.fixture(scope="module")
def grids() -> World:
    return World(1_000)


@pytest.fixture(scope="module")
def digits() -> World:
    return World(100_000)


def test_which_parts_there_are(grids: World, digits: World) -> None:
    parts = {part.label: (part.first, part.last, part.has_null) for part in grids.schema.calendar}
    assert parts["hour(ts)"] == (0, 23, True)
    assert parts["year(ts)"] == (1968, 1972, True)
    assert "hour(day)" not in parts  # a date has none
    assert "year(late)" not in parts  # it never varies
    assert parts["month(late)"] == (1, 12, False)
    assert grids.schema.coded[0].grid is not None
    assert digits.schema.coded[2].grid is None
    assert len(digits.schema.coded[2].radices) == 2
    assert grids.schema.names == ("ts", "small", "day", "late")


def test_small_columns_and_constant_parts_have_none() -> None:
    some = "TIMESTAMP '2020-01-01' + to_hours(range::INTEGER % 500) AS few, DATE '2020-01-01' AS one"
    assert Table.encode(connect().sql(f"SELECT {some} FROM range(900)")).schema.calendar == ()


@pytest.mark.parametrize("part", PARTS)
def test_numpy_has_the_parts_that_duckdb_has(part: str) -> None:
    first, last = PARTS[part]
    calendar = CalendarPart(0, "ts", part, first, last, True)
    made = (
        "SELECT TIMESTAMP '0001-01-01' + to_microseconds((hash(range, 7) % 315537897600000000)::BIGINT) AS ts FROM "
        "range(3000) UNION ALL SELECT unnest(['2000-02-29', '1900-02-28 23:59:59.999999', 'infinity', '-infinity', "
        "'9999-12-31 23:59:59.999999', '0001-01-01', '1969-12-31 23:59:59.5', '1970-01-01']::TIMESTAMP[])"
    )
    rows = connect().execute(f"SELECT CAST(ts AS VARCHAR), {calendar.sql} FROM ({made})").fetchall()
    codes = calendar.codes([text for text, _ in rows])
    assert [None if code == calendar.null else code + first for code in codes.tolist()] == [n for _, n in rows] + [None]


@pytest.mark.parametrize("where", BY_PARTS)
def test_a_region_over_hidden_columns_has_the_rows_of_the_clause(grids: World, where: str) -> None:
    region = grids.compiler.compile(where).region
    assert count_codes(grids.table, region) == grids.truth(where)


@pytest.mark.parametrize("where", BY_PARTS + OF_UNITS)
def test_evidence_rows_are_counted_as_duckdb_does(grids: World, digits: World, where: str) -> None:
    for world in (grids, digits):
        assert world.evidence.hits(world.compiler.compile(where)).count == world.truth(where)
        assert world.evidence.hits(CachedCompiler.of(world.compiler).compile(where)).count == world.truth(where)


@pytest.mark.parametrize("where", ["day > '2023-01-01' AND month(day) = 2", "month(day) = 2 AND year(day) < 2022"])
def test_several_filters_of_a_column_in_digits_are_one_set_of_its_values(digits: World, where: str) -> None:
    for compiler in (digits.compiler, CachedCompiler.of(digits.compiler)):
        ((item,),) = (box.filters for box in compiler.compile(where).region.boxes)
        assert item.positions == digits.schema.positions(2)


def test_one_part_of_a_column_in_digits_is_a_hidden_column(digits: World) -> None:
    ((item, other),) = (box.filters for box in digits.compiler.compile("month(day) = 2 AND small = 3").region.boxes)
    assert sorted([digits.schema.column_of(item.positions[0]), digits.schema.column_of(other.positions[0])]) == [
        1,
        digits.schema.calendar_of(2)["month"],
    ]


def test_hidden_columns_are_not_names(grids: World) -> None:
    assert grids.schema.find("hour(ts)") is None
    question = grids.compiler.compile("hour(ts) = 3 AND small > 2")
    assert [(item.column, item.sql) for item in question.comparisons] == [
        ("hour(ts)", "hour(ts) = 3"),
        ("small", "small > 2"),
    ]


def test_a_schema_with_parts_is_stored_and_a_damaged_one_refused(grids: World) -> None:
    data = grids.schema.to_json()
    assert Schema.from_json(data) == grids.schema
    for change in ({"of": 9}, {"of": 1}, {"part": "minute"}, {"first": 30}, {"last": 24}):
        damaged = data | {"calendar": [data["calendar"][0] | change]}
        with pytest.raises(ModelFileError, match="fit the model again"):
            Schema.from_json(damaged)


def test_the_parts_of_every_row_are_codes_of_the_table(grids: World) -> None:
    for index, part in enumerate(grids.schema.calendar, len(grids.schema.coded)):
        counts = dict(grids.source.rows(f"SELECT {part.sql}, count(*) FROM {grids.source.table} GROUP BY 1"))
        expected = [counts.get(number, 0) for number in range(part.first, part.last + 1)]
        assert grids.table.counts[index].tolist() == expected + ([counts.get(None, 0)] if part.has_null else [])
        assert np.sum(grids.table.counts[index]) == grids.schema.rows
