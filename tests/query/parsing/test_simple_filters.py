"""Simple filters are the expressions that the parser makes of them."""

from __future__ import annotations

import re
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from countless.data.columns.schema import Column, Schema
from countless.query.domains.comparisons import plain_comparison
from countless.query.parsing.keywords import KEYWORDS
from countless.query.parsing.parse import parse
from countless.query.parsing.simple_expressions import expression_of
from countless.query.parsing.simple_filters import simple_filters
from countless.query.parsing.sql import DIALECT
from tests.query.test_meaning import comparisons, world

SCHEMA = Schema(9, tuple(Column(name, "BIGINT", ("1",), False) for name in ("a", "b", "date", "A B", "not", "x.y")))


def read(clause: str, schema: Schema = SCHEMA) -> exp.Expr | None:
    filters = simple_filters(clause, schema)
    if filters is None:
        return None
    return reduce(lambda one, two: exp.And(this=one, expression=two), map(expression_of, filters))


@given(st.lists(comparisons(), min_size=1, max_size=4))
@settings(deadline=None, max_examples=200)
def test_what_is_read_is_what_the_parser_reads(filters: list[str]) -> None:
    clause = " AND ".join(filters)
    found = read(clause, world()[1].schema)
    assert found is None or found == parse(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "a = 1",
        " \"A B\"<>'it''s' and b != '' ",
        "a IN (-1, 2,-3) AND b NOT IN ('x', 'AND a = 3')",
        "a BETWEEN -1.5 AND 2 AND b between 'a' and 'b' AND a <= 7",
        "a > TIMESTAMP '2020-01-01 00:00:00' AND b = DATE '2020-01-01'",
        "a >= CAST('2020-01-01' AS TIMESTAMP) AND b < cast('1e3' as double)",
        "a = CAST('2020-01-01 00:00:00+00' AS TIMESTAMP WITH TIME ZONE)",
        'a IS NULL AND b IS NOT NULL AND "date" = true AND "not" = FALSE',
        "a\n=\t007 AND b = 1",
    ],
)
def test_simple_clauses_are_read(clause: str) -> None:
    assert read(clause) == parse(clause)
    filters = simple_filters(clause, SCHEMA)
    assert filters is not None
    for item in filters:
        inner = expression_of(item)
        assert plain_comparison(inner.this if item.negated else inner) == item.comparison


def test_the_words_are_those_of_the_parser() -> None:
    words = {word.upper() for word in DIALECT.tokenizer_class.KEYWORDS}
    assert {word for word in words if re.fullmatch("[A-Z_][A-Z0-9_]*", word)} == KEYWORDS


@pytest.mark.parametrize(
    "clause",
    [
        "",
        "a",
        "a = 1 OR b = 2",
        "a = 1 AND",
        "a = 1 b = 2",
        "a = 1AND b = 2",
        "a = 'x' 'y'",
        "a = e'x'",
        "a = 'x\\'",
        "a = 1e5",
        "a = .5",
        "a = 0x1f",
        "a >-5",
        "a = - 5",
        "a < > 1",
        "a <=> 1",
        "a == 1",
        "a = b",
        "a = ?",
        "a = NULL",
        "a IN ()",
        "a IN (1, NULL)",
        "a = 1 -- b",
        "a = 1; b = 2",
        "a = CAST('1' AS INTEGER)",
        "a = TRY_CAST('1' AS DOUBLE)",
        "date = '2020-01-01'",
        "not = 1",
        "t.a = 1",
        '"x.y" = 1',
        "unknown = 1",
        "ä = 1",
        "WHERE a = 1",
        "1 = a",
    ],
)
def test_anything_else_is_left_to_the_parser(clause: str) -> None:
    assert read(clause) is None
