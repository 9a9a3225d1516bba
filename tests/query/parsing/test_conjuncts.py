"""Clauses taken apart and put together again mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless import Estimator, QuerySyntaxError
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.query.parsing.conjuncts import parts, together
from countless.workload import mixed_clauses


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("age > 3", ["age > 3"]),
        ("a = 1 AND b = 2 OR c = 3", ["(a = 1 AND b = 2 OR c = 3)"]),
        ("SELECT * FROM people p WHERE p.a = 1 AND (p.b OR NOT p.c)", ["a = 1", "(b OR NOT c)"]),
        ("a BETWEEN 1 AND 2 AND b IS NULL", ["a BETWEEN 1 AND 2", "b IS NULL"]),
        ("city = 'sand AND gravel' AND \"since when\" > 3", ["city = 'sand AND gravel'", '"since when" > 3']),
        ("((a = 1 AND b = 2) AND (c = 3))", ["a = 1", "b = 2", "c = 3"]),
        ("TRUE AND a = 1", ["a = 1"]),
        ("a = 1 AND FALSE", ["a = 1", "FALSE"]),
        ("WHERE TRUE", []),
    ],
)
def test_filters(clause: str, found: list[str]) -> None:
    assert [part.sql for part in parts(clause)] == found


def test_a_filter_knows_its_columns() -> None:
    assert [part.columns for part in parts("a + a > 1 AND (b OR c = 2 OR b)")] == [("a",), ("b", "c")]


def test_together_they_keep_the_same_rows(estimator: Estimator, people: Path) -> None:
    source = Source.open(people)
    clauses = mixed_clauses(estimator.schema, source, 100, 7)
    assert source.counts([together(parts(clause)) for clause in clauses]) == source.counts(clauses)


def test_odd_names_and_types() -> None:
    query = """
    SELECT (range % 7)::UBIGINT AS "group", if(range % 11 = 0, 'nan'::DOUBLE, range / 7) AS "a.b",
        (TIMESTAMP '2020-01-01' + INTERVAL (range % 17) MINUTE)::TIMESTAMPTZ AS tz, 'it''s' || range % 12 AS "q""q",
        TIME '01:02:03' + INTERVAL (range % 20) SECOND AS t, (range % 30)::HUGEINT * 1000000000000000000 AS h
    FROM range(500)
    """
    source = Source.open(connect().sql(query))
    clauses = mixed_clauses(Table.encode(source).schema, source, 100, 7)
    assert source.counts([together(parts(clause)) for clause in clauses]) == source.counts(clauses)


def test_what_is_not_sql() -> None:
    with pytest.raises(QuerySyntaxError):
        parts("age >")
