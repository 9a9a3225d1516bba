"""Clauses that cannot be answered: the error's type, the phrase that helps, and the spot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, UnsupportedError

from countless import query
from countless.data.columns.schema import Column, LeftOut, Schema
from countless.errors import (
    ColumnLeftOutError,
    QueryError,
    QuerySyntaxError,
    QueryTooLargeError,
    QueryTypeError,
    UnknownColumnError,
    UnsupportedQueryError,
)
from countless.estimator.estimator import Estimator
from countless.query.compile import Compiler

SCHEMA = Schema(
    100,
    (
        Column("age", "INTEGER", ("1", "2", "3"), False),
        Column("hours", "INTEGER", ("1", "2", "3"), False),
        Column("city", "VARCHAR", ("Oslo", "Rome"), True),
        Column("born", "DATE", ("2020-01-01", "2020-01-02"), False),
        Column("ok", "BOOLEAN", ("false", "true"), False),
    ),
    (LeftOut("id", "BIGINT", "it was excluded when the model was fitted"),),
)

CASES = [
    ("hound > 3", UnknownColumnError, 'unknown column "hound": the columns are age, hours', "hound"),
    ("agee > 3", UnknownColumnError, 'unknown column "agee": did you mean "age"?', "agee"),
    ("ok AND Citty = 'Oslo'", UnknownColumnError, 'did you mean "city"?', "Citty"),
    ("zzz = 1", UnknownColumnError, "the columns are age, hours, city, born, ok", "zzz"),
    ('"Oslo" = city', UnknownColumnError, "text is written in single quotes, 'Oslo'", '"Oslo"'),
    ("city = Oslo", UnknownColumnError, "text is written in single quotes, 'Oslo'; the columns are age", "Oslo"),
    ("age > 1 AND city IN (Oslo, 'Rome')", UnknownColumnError, "in single quotes, 'Oslo'", "Oslo"),
    ("NOT city LIKE Oslo", UnknownColumnError, "in single quotes, 'Oslo'", "Oslo"),
    (
        "born LIKE '31.12.2025%'",
        QueryTypeError,
        "no LIKE(DATE, STRING_LITERAL); ask for a range: born >=",
        None,
    ),
    ("born LIKE '31.12.2025%'", QueryTypeError, "CAST(born AS VARCHAR) LIKE '2025-12-31%'", None),
    ("age ILIKE '1%'", QueryTypeError, "ILIKE(INTEGER, STRING_LITERAL); convert it to text first: CAST(age AS", None),
    ("id = 5", ColumnLeftOutError, 'the model does not hold the column "id": it was excluded', "id"),
    (
        "age = 'old'",
        QueryTypeError,
        "\"age\" is INTEGER: the types do not fit: Could not convert string 'old'",
        "age = 'old'",
    ),
    ("city > 5", QueryTypeError, "Cannot compare values of type VARCHAR and type INTEGER_LITERAL", "city > 5"),
    ("city > 5", QueryTypeError, "the model knows it as text: compare it with a string, or fit it as", "city > 5"),
    ("hour(city) < 9", QueryTypeError, "the model knows it as text", "hour(city) < 9"),
    ("age > 1000,5", QuerySyntaxError, "a number has a decimal point, such as 1000.5", ","),
    ("age IN (1, 2),", QuerySyntaxError, "did not expect ',' here; put names with spaces", ","),
    ("born > 5", QueryTypeError, "Cannot compare values of type DATE", "born > 5"),
    ("born = DATE '2020-13-45'", QueryTypeError, "date field value out of range", "born = DATE '2020-13-45'"),
    ("upper(age) = 'X'", QueryTypeError, '"age" is INTEGER', "upper(age) = 'X'"),
    ("age > hours", UnsupportedQueryError, 'one comparison is about the columns "age" and "hours"', "age > hours"),
    ("ok AND age + hours = 3", UnsupportedQueryError, "compare each column with values", "age + hours = 3"),
    ("age IN (SELECT 1)", UnsupportedQueryError, "a subquery cannot be answered", "age IN (SELECT 1"),
    ("EXISTS (SELECT 1)", UnsupportedQueryError, "a subquery cannot be answered", None),
    ("sum(age) > 5", UnsupportedQueryError, "an aggregate has no value for a single row", "sum(age"),
    ("count(*) > 5", UnsupportedQueryError, "an aggregate has no value for a single row", "count"),
    ("mode(age) = 5", UnsupportedQueryError, "an aggregate has no value for a single row", "mode(age"),
    ("row_number() OVER () = 1", UnsupportedQueryError, "a window function", None),
    ("age = ?", UnsupportedQueryError, "write the literal instead", "?"),
    ("age = $1", UnsupportedQueryError, "write the literal instead", "$1"),
    ("age = #1", UnsupportedQueryError, "cannot be named by its position: name the column", "age = #1"),
    ("age + COLUMNS('code') = 3", UnsupportedQueryError, "COLUMNS is not a column", None),
    ("age NOT IN [1, NULL]", UnsupportedQueryError, "write IN (...), without NULLs", "["),
    ("age BETWEEN SYMMETRIC 3 AND 1", QuerySyntaxError, 'syntax error at or near "SYMMETRIC"', None),
    ("city LIKE ANY ('Oslo', 'Rome')", QuerySyntaxError, 'syntax error at or near "ANY"', None),
    ("age DIV 2 = 1", QuerySyntaxError, 'syntax error at or near "DIV"', None),
    ("age <=> 1", QueryTypeError, "the types do not fit: there is no <=>(INTEGER, INTEGER_LITERAL)", None),
    ("initcap(city) = 'Oslo'", UnsupportedQueryError, "initcap() is not among the functions", "initcap"),
    ("upper(initcap(lower(city))) = 'OSLO'", UnsupportedQueryError, "initcap() is not among the functions", "initcap"),
    (
        "SELECT * FROM t WHERE initcap(t.city) = 'Oslo'",
        UnsupportedQueryError,
        "initcap() is not among the functions",
        "initcap",
    ),
    ("age = 1" + "+1" * 5000, QueryTooLargeError, "too many terms: compute constants beforehand", None),
    ("stats(age) LIKE '%Min: 1%'", UnsupportedQueryError, "a function of the session, or of how a table", None),
    ("current_query() LIKE '%domain%'", UnsupportedQueryError, "a function of the session", None),
    ("city = current_schema()", UnsupportedQueryError, "a function of the session", None),
    ("city = current_database()", UnsupportedQueryError, "a function of the session", None),
    ("sleep_ms(1000) IS NULL", UnsupportedQueryError, "a function of the session", None),
    ("uuid()::VARCHAR > city", UnsupportedQueryError, "a random function", None),
    ("random() < 0.5", UnsupportedQueryError, "a random function", "random"),
    ("frobnicate(age) = 1", UnsupportedQueryError, "frobnicate() is not among the functions", "frobnicate"),
    ("unnest([1, 2]) = age", UnsupportedQueryError, "lists are not computed", "["),
    ("a.age = 1 AND b.city = 'Oslo'", UnsupportedQueryError, "names several tables (a, b)", None),
    ("SELECT * FROM a JOIN b ON a.x = b.x WHERE age = 1", UnsupportedQueryError, "a join", None),
    ("SELECT city FROM a WHERE age = 1 GROUP BY city", UnsupportedQueryError, "GROUP BY", None),
    ("SELECT DISTINCT city FROM a WHERE age = 1", UnsupportedQueryError, "DISTINCT", None),
    ("SELECT * FROM (SELECT 1) WHERE age = 1", UnsupportedQueryError, "selects from a subquery", None),
    ("WITH x AS (SELECT 1) SELECT * FROM x WHERE age = 1", UnsupportedQueryError, "WITH", None),
    ("SELECT * FROM t WHERE age = 1 USING SAMPLE 10%", UnsupportedQueryError, "a sample", None),
    ("SELECT * FROM t TABLESAMPLE 10% WHERE age = 1", UnsupportedQueryError, "a sample", None),
    ("SELECT * FROM t PIVOT (sum(age) FOR ok IN (1)) WHERE age = 1", UnsupportedQueryError, "a pivot", None),
    ("SELECT 1 UNION SELECT 2", UnsupportedQueryError, "only a plain SELECT", None),
    ("SELECT * FROM t WHERE age = 1; SELECT 2", QuerySyntaxError, "one statement", None),
    ("age = 1; DROP TABLE t", QuerySyntaxError, "syntax error", "DROP"),
    ("age >", QuerySyntaxError, "syntax error: something is missing after '>'", ">"),
    ("2020_tract = 5", QuerySyntaxError, "a leading digit, or that are keywords in double quotes", None),
    ("age > 3 AND", QuerySyntaxError, "syntax error", "AND"),
    ("(age > 3", QuerySyntaxError, "syntax error", "3"),
    ("age > 3 city", QuerySyntaxError, "syntax error", "city"),
    ("city = 'Oslo", QuerySyntaxError, "check quotes and parentheses", None),
    ("age = 1 GROUP BY city", QuerySyntaxError, "syntax error", "GROUP BY"),
    ("", QuerySyntaxError, "the clause is empty", None),
    ("   ", QuerySyntaxError, "the clause is empty", None),
]


@pytest.mark.parametrize(("where", "kind", "phrase", "spot"), CASES, ids=[case[0][:40] or "empty" for case in CASES])
def test_clear_errors(where: str, kind: type[QueryError], phrase: str, spot: str | None) -> None:
    with pytest.raises(kind) as caught:
        Compiler(SCHEMA).compile(where)
    assert type(caught.value) is kind
    assert phrase in str(caught.value)
    assert "\n" not in caught.value.message
    assert len(str(caught.value)) < 1500  # a long clause is not shown whole
    if spot is not None:
        assert caught.value.span is not None
        start, end = caught.value.span
        assert where[start:end] == spot
        assert "^" * len(spot) in str(caught.value)


def test_the_spot_is_on_its_own_line() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        Compiler(SCHEMA).compile("age = 1\n  AND agee = 2\n  AND ok")
    assert str(caught.value).endswith("    AND agee = 2\n        ^^^^")


def test_not_a_clause() -> None:
    with pytest.raises(QueryTypeError, match="a question is SQL text or a predicate"):
        Compiler(SCHEMA).compile(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("clause", ["age > > 40", "age < < 3", "score = 1 AND age >  > 3"])
def test_a_comparison_that_is_written_twice_is_no_shift(clause: str, estimator: Estimator) -> None:
    with pytest.raises(QuerySyntaxError, match="did not expect"):
        estimator.estimate(clause)
    assert estimator.estimate("age >> 5 > 0").rows == estimator.estimate("age >= 32").rows


@pytest.mark.parametrize(
    ("clause", "rows"),
    [
        ("abs(age) = 1 -- ); DROP TABLE domain_0", "age = 1"),
        ("WHERE /* one */ abs(main.t.age) = 1;", "age = 1"),
        ("SELECT * FROM t AS z WHERE abs(z.age) /* z */ = 1 ORDER BY 1", "age = 1"),
        ("upper(\"CITY\") = 'OSLO'", "city = 'Oslo'"),
        ("lower(city) = 'os'\n'lo'", "city = 'Oslo'"),
    ],
)
def test_duckdb_is_shown_the_clause_as_it_was_written(clause: str, rows: str) -> None:
    boxes, meant = (Compiler(SCHEMA).compile(where).region.boxes for where in (clause, rows))
    assert [box.filters[0].constraint.weights.tolist() for box in boxes] == [
        box.filters[0].constraint.weights.tolist() for box in meant
    ]


def test_clauses_too_long_for_duckdb_as_a_whole_are_answered_in_parts() -> None:
    (box,) = Compiler(SCHEMA).compile(" OR ".join(f"abs(age) = {number}" for number in range(2, 1500))).region.boxes
    assert box.filters[0].constraint.weights.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "error", [ParseError("no"), UnsupportedError("no"), ValueError(), AttributeError("no"), KeyError(1)]
)
def test_no_error_of_the_parser_or_writer_gets_out(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    compiler = Compiler(SCHEMA)
    writer = next(kind for kind in exp.EQ.__mro__ if "sql" in vars(kind))
    for place, name in ((writer, "sql"), (sqlglot, "parse_one")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            with pytest.raises(QueryError):
                compiler.compile("abs(age) = 1")


def test_sqlglot_is_called_in_one_place() -> None:
    calls = re.compile(r"sqlglot\.(parse|parse_one|tokenize|transpile)\(|\.sql\((dialect=|\"duckdb|\))")
    for path in Path(query.__file__).parent.glob("*.py"):
        code = "\n".join(line for line in path.read_text().splitlines() if ">>>" not in line)
        assert path.name == "sql.py" or calls.search(code) is None, path
