"""Expressions that are computed once mean what the compiler makes of each clause."""

from __future__ import annotations

import numpy as np
import pytest

from countless.data.encoding.table import read_schema
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source, connect
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.known_expressions import KnownExpressions
from tests.query.test_filter_cache import same

TABLE = """
SELECT
    CASE WHEN range % 50 > 0
        THEN TIMESTAMP '1968-11-05 07:30:00' + to_seconds(hash(range % 2500) % 120000000) END AS ts,
    CASE WHEN range % 9 > 0 THEN (hash(range, 1) % 40)::INTEGER - 20 END AS small,
    round((hash(range % 2000, 2) % 100000) / 7, 2) AS wide,
    ['a', 'bb', 'ccc'][1 + (hash(range, 5) % 3)::INTEGER] AS letters
FROM range(4000)
"""
OPERATORS = ("= {}", "<> {}", "!= {}", "< {}", "<={}", ">{}", ">= {}", "BETWEEN -1 AND {}", "IN ({}, 5, -2)")
EXPRESSIONS = (
    "hour(ts)",
    "extract(dow FROM ts)",
    "month(ts) % 5",
    "minute(ts)",
    "day(ts)",
    "small % 3",
    "abs(small)",
    "small + 1",
    "wide::INTEGER % 4",
    "length(letters)",
    "small",
    "NOT small",
    "wide",
)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    connection = connect()
    connection.execute(f"CREATE TABLE t AS {TABLE}")
    source = Source.open(connection.table("t"))
    schema = read_schema(source, EncodeOptions(max_distinct=200)).with_calendar()
    assert schema.calendar
    return Compiler(schema, EvidenceRows.drawn(source, schema, 900, 1))


def test_other_numbers_mean_what_the_compiler_makes_of_them(compiler: Compiler) -> None:
    cached = CachedCompiler.of(compiler)
    for expression in EXPRESSIONS:
        for operator in OPERATORS:
            for number in (-1, 3, 0, 2, 99):
                where = f"{expression} {operator.format(number)}"
                alone = compiler.compile(where)
                found = cached.compile(where)
                assert same(found.region, alone.region), where
                assert found.certain == alone.certain, where
                for one, two in zip(found.region.boxes, alone.region.boxes, strict=True):
                    for own, other in zip(one.filters, two.filters, strict=True):
                        if own.seen is None or other.seen is None:
                            assert own.seen is other.seen, where
                        else:
                            assert np.array_equal(own.seen, other.seen), where


@pytest.mark.parametrize(
    ("clause", "other"),
    [
        ("hour(ts) = 3", "hour(ts) = 4"),
        ("minute(ts) <= 3", "minute(ts) <= 59"),
        ("abs(small) IN (1, 2)", "abs(small) IN (7)"),
    ],
)
def test_an_expression_is_known_after_its_first_clause(compiler: Compiler, clause: str, other: str) -> None:
    known = KnownExpressions(compiler)
    assert known.region(clause) is None
    known.learn(clause)
    assert known.region(clause) is not None
    assert known.region(other) is not None


@pytest.mark.parametrize(
    ("clause", "other"),
    [
        ("hour(ts) = 3", "hour(ts) < 3"),
        ("small = 1 OR hour(ts) = 3", "small = 1 OR hour(ts) = 4"),
        ("NOT hour(ts) IN (3)", "NOT hour(ts) IN (4)"),
        ("3 = hour(ts)", "3 = hour(ts)"),
        ("small + hour(ts) = 3", "small + hour(ts) = 4"),
        ("hour(ts) = 3.0", "hour(ts) = 4.0"),
        ("small % 3 >= 1", "small % 3 > 1"),
    ],
)
def test_what_is_not_surely_the_same_expression_is_not_known(compiler: Compiler, clause: str, other: str) -> None:
    known = KnownExpressions(compiler)
    known.learn(clause)
    assert known.region(other) is None
