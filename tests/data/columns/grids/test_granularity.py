"""The step that a column's values keep to is found, kept in the file, and follows new rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.schema import Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import ModelFileError
from countless.options import EncodeOptions

SECOND = 10**9


def granularity(value: str, rows: int = 4000) -> Granularity | None:
    source = Source.open(connect().sql(f"SELECT {value} AS v FROM range({rows})"))
    (column,) = Table.encode(source, EncodeOptions(max_distinct=100, no_text=("v",))).schema.coded
    assert column.grid is not None
    return column.grid.granularity


@pytest.mark.parametrize(
    ("value", "step", "offset"),
    [
        ("TIMESTAMP '1960-01-01' + INTERVAL (hash(range) % 2000000) MINUTE", 60 * SECOND, 0),
        ("TIMESTAMP '2020-01-01 00:07' + INTERVAL (hash(range) % 200000) HOUR", 3600 * SECOND, 7 * 60 * SECOND),
        ("TIMESTAMP '2020-01-01' + INTERVAL (hash(range) % 2000000000) MILLISECOND", 10**6, 0),
        ("(TIMESTAMP '2020-01-01' + INTERVAL (hash(range) % 2000000) SECOND)::TIMESTAMPTZ", SECOND, 0),
        ("(TIMESTAMP '2020-01-01' + INTERVAL (hash(range) % 2000000) SECOND)::TIMESTAMP_NS", SECOND, 0),
        ("TIME '00:00:00' + INTERVAL (hash(range) % 86400) SECOND", SECOND, 0),
        ("(hash(range) % 100000)::BIGINT - 50000", 1, 0),
        ("((hash(range) % 100000)::BIGINT - 50000) * 50 + 7", 50, 7),
        ("((hash(range) % 100000)::HUGEINT + 10) * 60", 60, 0),
        ("round((hash(range) % 100000) / 100, 2)::DOUBLE", "1/100", 0),
        ("round((hash(range) % 100000) / 100, 2)::FLOAT", "1/100", 0),
        ("(hash(range) % 100000)::DOUBLE + 0.99", 1, "99/100"),
        ("(hash(range) % 100000 / 20.0)::DECIMAL(12, 2)", "1/20", 0),
        ("-(hash(range) % 100000 / 100)::DECIMAL(38, 2) - 1", "1/100", 0),
        ("CASE range % 100 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE ELSE range END", 1, 0),
        (
            "if(range % 99 = 0, 'infinity'::TIMESTAMP, TIMESTAMP '2020-01-01' + INTERVAL (range) HOUR)",
            3600 * SECOND,
            0,
        ),
        # One row in 2,000 has an odd second; more than half of all rows have one value, which has a cell of its own.
        (
            "TIMESTAMP '2020-01-01' + INTERVAL (hash(range) % 20000) HOUR + INTERVAL (range % 2000 // 1999) SECOND",
            3600 * SECOND,
            0,
        ),
        ("CASE WHEN range % 3 > 0 THEN 0 ELSE (hash(range) % 100000)::DOUBLE / 8 END", "1/8", 0),
    ],
)
def test_the_coarsest_step(value: str, step: int | str, offset: int | str) -> None:
    result = granularity(value)
    assert result is not None
    if step == "1/8":  # of the decimal places only round numbers are tried
        assert (Fraction(step) / result.step).denominator == 1
    else:
        assert result == Granularity(Fraction(step), Fraction(offset))


@pytest.mark.parametrize(
    "value",
    [
        "exp((hash(range) % 100000) / 9000.0)",
        "DATE '1960-01-01' + (hash(range) % 40000)::INTEGER",
        "md5(range::VARCHAR)",
    ],
)
def test_values_without_a_step(value: str) -> None:
    assert granularity(value) is None


def test_the_file_keeps_it() -> None:
    source = Source.open(connect().sql("SELECT (hash(range) % 9999)::DOUBLE / 100 AS v FROM range(4000)"))
    schema = Table.encode(source, EncodeOptions(max_distinct=100)).schema
    data = schema.to_json()
    assert data["columns"][0]["grid"]["granularity"] == {"step": "1/100", "offset": "0"}
    assert Schema.from_json(data) == schema
    for damaged in ({"step": "0", "offset": "0"}, {"step": "1/0", "offset": "0"}, {"step": "1"}, {"step": 1}):
        data["columns"][0]["grid"]["granularity"] = damaged
        with pytest.raises(ModelFileError, match="granularity"):
            Schema.from_json(data)
    del data["columns"][0]["grid"]["granularity"]  # a file of an earlier version
    (column,) = Schema.from_json(data).coded
    assert column.grid is not None
    assert column.grid.granularity is None


def test_what_two_sets_of_values_keep_to() -> None:
    tens, fives = Granularity(Fraction(10)), Granularity(Fraction(10), Fraction(5))
    assert tens.common(fives) == Granularity(Fraction(5))
    assert tens.common(Granularity(Fraction(3, 4))) == Granularity(Fraction(1, 4))
    assert tens.common(None) is None


def test_the_nearest_between_cuts() -> None:
    tens = Granularity(Fraction(10), Fraction(3))
    assert tens.nearest(27, (0, 0), (100, 0)) == 23
    assert tens.nearest(29, (0, 0), (33, 0)) == 23
    assert tens.nearest(29, (0, 0), (33, 1)) == 33
    assert tens.nearest(22, (23, 1), (100, 0)) == 33
    assert tens.nearest(25, (24, 0), (32, 1)) is None
