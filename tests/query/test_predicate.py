"""Predicates in Python are the predicates in SQL."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

from countless.errors import QueryTypeError, UnknownColumnError
from countless.query.parameters import Clause
from countless.query.parsing.sql import written
from countless.query.predicate import Predicate, col, literal
from countless.workload import count_codes
from tests.query.test_meaning import world

CASES: list[tuple[Predicate, str]] = [
    (col("i") > 1, "i > 1"),
    (col("i") >= np.int64(1), "i >= 1"),
    (col("i") < -1, "i < -1"),
    (col("i") <= Decimal("1.5"), "i <= 1.5"),
    (col("s") == "O'Hara", "s = 'O''Hara'"),
    (col("s") != "a", "s <> 'a'"),
    (col("x") == float("inf"), "x = 'inf'::DOUBLE"),
    (col("x") >= 0.1, "x >= 0.1"),
    (col("b") == True, "b = TRUE"),  # noqa: E712
    (col("d") >= datetime.date(2020, 2, 28), "d >= DATE '2020-02-28'"),
    (col("the time") > datetime.datetime(2020, 2, 29, 1), "\"the time\" > TIMESTAMP '2020-02-29 01:00:00'"),
    (col("i").between(-1, 2), "i BETWEEN -1 AND 2"),
    (col("i").isin([1, 2, 99]), "i IN (1, 2, 99)"),
    (col("i").isin([]), "FALSE"),
    (col("s").like("%b"), "s LIKE '%b'"),
    (col("s").ilike("AB"), "s ILIKE 'AB'"),
    (col("s").is_null(), "s IS NULL"),
    (col("s").is_not_null(), "s IS NOT NULL"),
    (~col("b"), "NOT b"),
    (col("b") | (col("i") > 1), "b OR i > 1"),
    ((col("i") > 1) & col("b"), "i > 1 AND b"),
    ((col("i") > 1) & (col("s") == "a") | ~(col("b") == True), "(i > 1 AND s = 'a') OR NOT b"),  # noqa: E712
    (~((col("i") > 1) | (col("s") == "a")), "NOT (i > 1 OR s = 'a')"),
]


@pytest.mark.parametrize(("predicate", "sql"), CASES, ids=[sql for _, sql in CASES])
def test_the_same_rows(predicate: Predicate, sql: str) -> None:
    source, table, compiler = world()
    (truth,) = source.counts([sql])
    assert count_codes(table, compiler.compile(predicate).region) == truth
    assert count_codes(table, compiler.compile(str(predicate)).region) == truth


def test_a_chain_of_comparisons_is_refused() -> None:
    with pytest.raises(TypeError, match="combine predicates with &"):
        assert 1 < col("i") < 3


def test_two_columns() -> None:
    with pytest.raises(QueryTypeError, match='cannot compare the columns "i" and "x"'):
        assert col("i") > col("x")


def test_a_value_that_is_none_of_sqls() -> None:
    with pytest.raises(QueryTypeError, match="cannot use a object in a predicate"):
        assert col("i") == object()


def test_a_boolean_column_is_a_condition() -> None:
    source, table, compiler = world()
    assert count_codes(table, compiler.compile(col("b")).region) == source.counts(["b"])[0]


def test_none_and_a_bare_string_are_mistakes() -> None:
    with pytest.raises(QueryTypeError, match="use is_null"):
        assert col("i") == None  # noqa: E711
    with pytest.raises(QueryTypeError, match=r"write isin\(\['ab'\]\)"):
        col("s").isin("ab")


def test_an_unknown_column_gets_no_advice_about_quotes() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        world()[2].compile(col("zzz") > 1)
    assert "single quotes" not in str(caught.value)


VALUES = [7, -7, 2.5, -2.5, float("inf"), "it's", True, None, Decimal("-1.5")]


@pytest.mark.parametrize("value", [*VALUES, datetime.date(2020, 1, 31), datetime.datetime(2020, 1, 31, 3)])
def test_a_bound_value_is_written_as_the_parser_writes_it(value: object) -> None:
    clause = Clause.read("a = ?").bound((value,), {})
    assert clause.text == f"a = {written(literal(value))}"
    assert clause.condition == Clause.read(clause.text).condition
