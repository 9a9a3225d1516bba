"""SELECTs with aggregates are taken apart, and what no density can answer is refused in a line."""

from __future__ import annotations

import pytest

from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column, LeftOut, Schema
from countless.data.columns.strings.text import TextColumn
from countless.errors import (
    ColumnLeftOutError,
    QueryError,
    QuerySyntaxError,
    QueryTypeError,
    UnknownColumnError,
    UnsupportedQueryError,
)
from countless.query.select.outer_statement import GroupTable, Outer
from countless.query.select.selection import Aggregate, RowExpression
from countless.query.select.statement import read_select
from tests.texts import URL

GRID = Grid((0, 2), (0.0, 1.0, 0.0, 1.0), (5, 5))
SCHEMA = Schema(
    100,
    (
        Column("age", "INTEGER", ("1", "2", "3"), True),
        Column("city", "VARCHAR", ("Oslo", "Rome"), True),
        Column("since when", "DATE", ("2020-01-01",), False),
        Column("income", "DOUBLE", ("1.0", "2.0", "3.0", "4.0"), False, (), GRID),
        Column("n", "BIGINT", ("1",), False),
        URL,
    ),
    (LeftOut("secret", "INTEGER", "it was excluded when the model was fitted"),),
)


def outer(sql: str) -> str:
    return read_select(sql, SCHEMA).outer.sql("duckdb")


def test_the_text_column_is_one() -> None:
    assert isinstance(URL, TextColumn)


class TestParts:
    def test_all_of_them(self) -> None:
        statement = read_select(
            "SELECT city, count(*), avg(age) AS m FROM people p WHERE p.age > 1 AND n IS DISTINCT FROM 3 "
            "GROUP BY city HAVING m > 2 ORDER BY 2 DESC, m LIMIT 3 OFFSET 1",
            SCHEMA,
        )
        assert statement.groups == (1,)
        assert statement.aggregates == (Aggregate("count"), Aggregate("avg", 0))
        assert statement.plain == (None, 0, 1)
        assert statement.where is not None
        assert statement.where.strip() == "p.age > 1 AND n IS DISTINCT FROM 3"
        assert statement.sql[len(statement.where) - 5 : len(statement.where)] == statement.where[-5:]
        assert statement.outer.sql("duckdb") == (
            "SELECT __g0, __a0, __a1 AS m FROM __groups WHERE m > 2 ORDER BY 2 DESC, m LIMIT 3 OFFSET 1"
        )

    @pytest.mark.parametrize(
        "by",
        [
            "city, age",
            "1, 3",
            "town, age",
            "ALL",
            "(city), age",
            "(city, age)",
            "CITY, 3, age",
            "t.city, t.age",
        ],
    )
    def test_ways_to_group(self, by: str) -> None:
        statement = read_select(f"SELECT city AS town, count(*) + 1, age FROM t GROUP BY {by}", SCHEMA)
        assert statement.groups == (1, 0)
        assert statement.outer.sql("duckdb") == "SELECT __g0 AS town, __a0 + 1, __g1 FROM __groups"

    def test_an_aggregate_is_asked_for_once(self) -> None:
        statement = read_select("SELECT avg(age), mean(AGE), sum(age) / avg(t.age) FROM t HAVING avg(age) > 1", SCHEMA)
        assert statement.aggregates == (Aggregate("avg", 0), Aggregate("sum", 0))

    @pytest.mark.parametrize(
        ("sql", "aggregate"),
        [
            ("count()", Aggregate("count")),
            ("count(1)", Aggregate("count")),
            ("count_star()", Aggregate("count")),
            ("count(city)", Aggregate("count", 1)),
            ("median(age)", Aggregate("median", 0, "0.5")),
            ("quantile(age, .25)", Aggregate("quantile_disc", 0, "0.25")),
            ("quantile_cont(age, 0.25)", Aggregate("quantile_cont", 0, "0.25")),
            ('quantile_disc("since when", 1)', Aggregate("quantile_disc", 2, "1")),
            ("approx_quantile(age, 0.9)", Aggregate("approx_quantile", 0, "0.9")),
            ("stddev(age)", Aggregate("stddev_samp", 0)),
            ("stddev_pop(age)", Aggregate("stddev_pop", 0)),
            ("variance(age)", Aggregate("var_samp", 0)),
            ("var_pop(income)", Aggregate("var_pop", 3)),
        ],
    )
    def test_aggregates(self, sql: str, aggregate: Aggregate) -> None:
        assert read_select(f"SELECT {sql}", SCHEMA).aggregates == (aggregate,)

    def test_names_that_mean_two_things(self) -> None:
        assert outer("SELECT avg(age) AS city, city FROM t GROUP BY t.city ORDER BY city") == (
            "SELECT __a0 AS city, __g0 FROM __groups ORDER BY city"
        )

    def test_from_first_and_comments(self) -> None:
        statement = read_select("FROM t SELECT count(*) -- all\nWHERE age > 1 -- some\n", SCHEMA)
        assert statement.where is not None
        assert statement.where.split("--")[0].strip() == "age > 1"


class TestExpressions:
    """With evidence rows, groups and aggregates may be of expressions."""

    @pytest.mark.parametrize("by", ["upper(city)", "1", "town", "UPPER(t.CITY)", '(upper("city"))'])
    def test_ways_to_group(self, by: str) -> None:
        sql = f"SELECT upper(city) AS town, count(*), lower(upper(City)) FROM t GROUP BY {by} ORDER BY town"
        statement = read_select(sql, SCHEMA, evidence=True)
        assert statement.groups == (RowExpression('UPPER("city")', (1,)),)
        assert statement.outer.sql("duckdb") == ("SELECT __g0 AS town, __a0, LOWER(__g0) FROM __groups ORDER BY town")

    def test_beside_columns_all_are_expressions(self) -> None:
        statement = read_select("SELECT age, age + n, count(*) FROM t GROUP BY age, age + n", SCHEMA, evidence=True)
        assert statement.groups == (RowExpression('"age"', (0,)), RowExpression('"age" + "n"', (0, 4)))
        assert statement.outer.sql("duckdb") == "SELECT __g0, __g1, __a0 FROM __groups"

    def test_of_aggregates(self) -> None:
        statement = read_select(
            "SELECT city, sum(age + n), count(url), avg(age) FROM t GROUP BY 1", SCHEMA, evidence=True
        )
        assert statement.groups == (1,)
        assert statement.aggregates == (
            Aggregate("sum", RowExpression('"age" + "n"', (0, 4))),
            Aggregate("count", RowExpression('"url"', (5,))),
            Aggregate("avg", 0),
        )


@pytest.mark.parametrize(
    ("sql", "message", "spot"),
    [
        ("SELECT min(age) FROM t", r"min and max cannot be estimated: use quantile_cont\(age, 0.01\)", "age"),
        ("SELECT max(age) FROM t", r"use quantile_cont\(age, 0.99\)", "age"),
        ("SELECT count(DISTINCT age) FROM t", "DISTINCT", "count(DISTINCT age"),
        ("SELECT sum(age + 1) FROM t", "takes a column", "sum(age + 1"),
        ("SELECT avg(city) FROM t", "takes numbers", "city"),
        ('SELECT avg("since when") FROM t', "use quantile_disc", '"since when"'),
        ("SELECT avg(url) FROM t", "character by character", "url"),
        ("SELECT count(url) FROM t", r'select count\(\*\) with WHERE "url" IS NOT NULL', "url"),
        ("SELECT url, count(*) FROM t GROUP BY url", "character by character", "url"),
        ("SELECT city AS url, count(*) FROM t GROUP BY url", "character by character", "url"),
        ("SELECT income, count(*) FROM t GROUP BY 1", "too many values to group by", "income"),
        ("SELECT upper(city), count(*) FROM t GROUP BY 1", "not expressions", "upper(city"),
        ("SELECT city, count(*) FROM t GROUP BY ROLLUP (city)", "ROLLUP", "city"),
        ("SELECT city, count(*) FROM t GROUP BY 3", "selects 2", None),
        ("SELECT city, count(*) FROM t", "not grouped", "city"),
        ("SELECT age FROM t", "not grouped", "age"),
        ("SELECT 1 FROM t", "no aggregate", None),
        ("SELECT * FROM t", r"\* is not", None),
        ("SELECT count(*) FROM t ORDER BY 2", "selects 1", None),
        ("SELECT city, count(*) FROM t GROUP BY 1 ORDER BY #1", "cannot be named by its position", None),
        ("SELECT DISTINCT city FROM t", "GROUP BY the columns", None),
        ("SELECT count(*) FROM t JOIN u USING (x)", "join", None),
        ("SELECT count(*) FROM t, u", "join", None),
        ("SELECT count(*) FROM (SELECT 1)", "subquery", None),
        ("SELECT count(*) + (SELECT 1) FROM t", "subquery", None),
        ("SELECT sum(age) OVER () FROM t", "window", None),
        ("SELECT count(*) FILTER (WHERE age > 1) FROM t", "in the WHERE", None),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM t", "quantile_cont", None),
        ("SELECT quantile_cont(age, 2) FROM t", "between 0 and 1", None),
        ("SELECT quantile_cont(age, [0.1, 0.9]) FROM t", "one number", None),
        ("SELECT count(*) FROM t QUALIFY TRUE", "QUALIFY", None),
        ("SELECT count(*) FROM t USING SAMPLE 10", "sample", None),
        ("SELECT 1 UNION SELECT 2", "plain SELECT", None),
        ("WITH u AS (SELECT 1) SELECT count(*) FROM u", "WITH", None),
        ("age > 3", "plain SELECT", None),
        ('SELECT age, city, n, "since when", count(*) FROM t GROUP BY ALL', "at most 3", None),
    ],
)
def test_what_is_refused(sql: str, message: str, spot: str | None) -> None:
    with pytest.raises(UnsupportedQueryError, match=message) as caught:
        read_select(sql, SCHEMA)
    assert "\n" not in caught.value.message
    if spot is not None:
        assert caught.value.span is not None
        assert spot in sql[slice(*caught.value.span)]


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT avg(agee) FROM t", UnknownColumnError, 'did you mean "age"'),
        ("SELECT cty, count(*) FROM t GROUP BY cty", UnknownColumnError, 'did you mean "city"'),
        ("SELECT avg(secret) FROM t", ColumnLeftOutError, "excluded"),
        ("SELECT count(", QuerySyntaxError, "syntax"),
        ("", QuerySyntaxError, "SQL text"),
        ("SELECT count(*); SELECT 1", QuerySyntaxError, "one statement"),
    ],
)
def test_other_errors(sql: str, kind: type[QueryError], message: str) -> None:
    with pytest.raises(kind, match=message):
        read_select(sql, SCHEMA)


class TestOuter:
    def test_what_duckdb_objects_to(self) -> None:
        for sql, kind, message in (
            ("SELECT foo(count(*)) FROM t", UnsupportedQueryError, "foo[(][)] is not among the functions"),
            ("SELECT upper(count(*)) || avg(age) + 'x' FROM t", QueryTypeError, "cannot compute"),
            ("SELECT count(*) FROM t WHERE age > 1 HAVING count(*) > 'x'", QueryTypeError, "cannot compute"),
            (
                "SELECT mad(age), count(*) FROM t GROUP BY age",
                UnsupportedQueryError,
                "mad[(][)] is not among the functions",
            ),
            (
                "SELECT age FROM t GROUP BY age ORDER BY mad(age)",
                UnsupportedQueryError,
                "mad[(][)] is not among the functions",
            ),
            (
                "SELECT age FROM t GROUP BY age HAVING mad(age) > 1",
                UnsupportedQueryError,
                "mad[(][)] is not among the functions",
            ),
        ):
            with pytest.raises(kind, match=message):
                self.answered(sql)

    def test_files_are_out_of_reach(self) -> None:
        with pytest.raises(QueryError):
            self.answered("SELECT read_text('/etc/hostname'), count(*) FROM t")

    def test_names_are_duckdbs(self) -> None:
        sql = 'SELECT Count(*), avg(p.age), mean(age) + 1, "since when", x: sum(age) FROM people AS p GROUP BY ALL'
        assert self.answered("SELECT count(*), -- all of them\nFROM t") == ("count_star()",)
        assert self.answered(sql) == ("count_star()", "avg(p.age)", "(mean(age) + 1)", "since when", "x")

    @staticmethod
    def answered(sql: str) -> tuple[str, ...]:
        statement, outer = read_select(sql, SCHEMA), Outer(SCHEMA)
        header = outer.header(statement)
        types = [SCHEMA.coded[group].type for group in statement.groups if isinstance(group, int)]
        table = GroupTable([[None]] * len(statement.groups), [["1"]] * len(statement.aggregates), 1, types)
        return outer.run(statement, header, table).names
