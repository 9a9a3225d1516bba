"""Fields of structs in clauses: which column is meant, what it counts, and errors that point at the spot."""

from __future__ import annotations

import pytest

from countless.data.columns.schema import Column, LeftOut, Schema
from countless.data.sources.source import connect
from countless.errors import ColumnLeftOutError, QueryError, UnknownColumnError, UnsupportedQueryError
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.parsing.conjuncts import parts
from countless.query.predicate import col
from countless.query.question import Question
from countless.query.select.outer_statement import GroupTable, Outer
from countless.query.select.statement import read_select
from countless.region import ValueSet

SCHEMA = Schema(
    100,
    (
        Column("age", "INTEGER", ("1", "2", "3"), False),
        Column("city", "VARCHAR", ("Bonn", "Oslo"), False),
        Column("address.city", "VARCHAR", ("Oslo", "Rome"), True),
        Column("address.zip", "INTEGER", ("1", "2", "3"), True),
        Column("billing.zip", "INTEGER", ("1", "2"), True),
        Column("deep.a.b.c", "INTEGER", ("1", "2"), True),
    ),
    (
        LeftOut("address.geo", "STRUCT(lat DOUBLE)", "it is a struct: --flatten 2 makes columns of its fields"),
        LeftOut("address.id", "BIGINT", "it was excluded when the model was fitted"),
        LeftOut("raw", "STRUCT(age INTEGER)", "it is a struct: --flatten 1 makes columns of its fields"),
    ),
)
COMPILER = Compiler(SCHEMA)


def weights(question: Question) -> list[dict[tuple[int, ...], list[float]]]:
    """Which codes each box of a question allows, by the positions of the column."""
    return [
        {item.positions: [float(weight) for weight in item.constraint.weights] for item in box.filters}
        for box in question.region.boxes
        if all(isinstance(item.constraint, ValueSet) for item in box.filters)
    ]


def asked(where: str) -> list[str]:
    return [comparison.column for comparison in COMPILER.compile(where).comparisons]


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("address.city = 'Oslo'", ["address.city"]),
        ("\"address.city\" = 'Oslo'", ["address.city"]),
        ('"address"."city" = \'Oslo\'', ["address.city"]),
        ("Address . CITY = 'Oslo'", ["address.city"]),
        ("t.address.city = 'Oslo' AND t.age = 1", ["address.city", "age"]),
        ("t.\"address.city\" = 'Oslo'", ["address.city"]),
        ("s.t.deep.a.b.c = 1", ["deep.a.b.c"]),
        ("deep.a.b.c = 1", ["deep.a.b.c"]),
        ("address.zip = 1 AND billing.zip = 2 AND t.age = 3", ["address.zip", "billing.zip", "age"]),
        ("SELECT * FROM address WHERE address.city = 'Oslo'", ["address.city"]),
        ("SELECT * FROM t WHERE t.address.zip BETWEEN 1 AND 2", ["address.zip"]),
        ("upper(address.city) = 'OSLO'", ["address.city"]),
        ("t.city = 'Oslo'", ["city"]),
        ("city = 'Oslo'", ["city"]),
        ("address.age = 1", ["age"]),  # no field is called so: address is the table
        ("raw.city = 'Oslo'", ["city"]),
    ],
)
def test_the_column_that_is_meant(where: str, columns: list[str]) -> None:
    assert asked(where) == columns


@pytest.mark.parametrize(
    "where",
    [
        "address.city = 'Oslo'",
        "address.zip > 1 AND NOT address.city = 'Oslo'",
        "address.zip IS NULL OR length(address.city) = 4 AND address.zip % 2 = 1",
        "t.address.zip IN (1, 3)",
    ],
)
def test_what_it_means_is_what_duckdb_says(where: str) -> None:
    """Every combination of values once: as many rows of DuckDB's struct match as of the region."""
    cities, zips = "SELECT unnest(['Oslo', 'Rome', NULL]) AS city", "SELECT unnest([1, 2, 3, NULL]) AS zip"
    rows = f"SELECT {{'city': city, 'zip': zip}} AS address FROM ({cities}), ({zips})"
    truth = len(connect().execute(f"SELECT * FROM ({rows}) AS t WHERE {where}").fetchall())
    found = 0
    for box in weights(COMPILER.compile(where)):
        sizes = {(2,): 3.0, (3,): 4.0} | {positions: sum(own) for positions, own in box.items()}
        found += int(sizes[(2,)] * sizes[(3,)])
    assert found == truth


def test_in_python() -> None:
    one, two = COMPILER.compile(col("address.city") == "Oslo"), COMPILER.compile("address.city = 'Oslo'")
    assert weights(one) == weights(two) == [{(2,): [1.0, 0.0, 0.0]}]


def test_many_at_once() -> None:
    where = "address.zip = 1 AND t.age = 2"
    assert weights(CachedCompiler.of(COMPILER).compile(where)) == weights(COMPILER.compile(where))


def test_parts_keep_the_struct() -> None:
    clause_parts = parts("t.age > 1 AND address.city = 'Oslo'", SCHEMA)
    assert [part.sql for part in clause_parts] == ["age > 1", "\"address.city\" = 'Oslo'"]
    assert [part.columns for part in clause_parts] == [("age",), ("address.city",)]


@pytest.mark.parametrize(
    ("where", "kind", "message", "spot"),
    [
        ("age = 1 AND address.town = 'x'", UnknownColumnError, '"address.town": did you mean "address.city"?', 12),
        ("t.address.town = 'x'", UnknownColumnError, 'unknown column "address.town"', 14),
        ("address IS NULL", UnknownColumnError, "it is a struct: name one of its fields, address.city, address.zip", 7),
        ("zip = 1", UnknownColumnError, 'unknown column "zip": did you mean "address.zip"?', 3),
        ("address.geo IS NULL", ColumnLeftOutError, '"address.geo": it is a struct: --flatten 2 makes', 11),
        ("address.geo.lat > 1", ColumnLeftOutError, '"address.geo": it is a struct: --flatten 2 makes', 15),
        ("raw.age = 1", ColumnLeftOutError, 'does not hold the column "raw": it is a struct: --flatten 1', 7),
        ("address.id = 1", ColumnLeftOutError, '"address.id": it was excluded', 10),
        ("a.age = 1 AND b.age = 2", UnsupportedQueryError, "names several tables (a, b)", None),
        ("address.zip = billing.zip", UnsupportedQueryError, '"address.zip" and "billing.zip"', 25),
        ("age = 1 AND address.zip > 'x'", QueryError, '"address.zip" is INTEGER', 17),
    ],
)
def test_errors_point_at_the_spot(where: str, kind: type[QueryError], message: str, spot: int | None) -> None:
    with pytest.raises(kind) as caught:
        COMPILER.compile(where)
    assert message in str(caught.value)
    assert str(caught.value).count("^") == (spot or 0)


class TestSelect:
    def test_names_and_groups(self) -> None:
        statement = read_select("SELECT address.city, count(*), avg(t.address.zip) + 1 AS m FROM t GROUP BY 1", SCHEMA)
        assert statement.groups == (2,)
        assert [aggregate.column for aggregate in statement.aggregates] == [None, 3]
        header = Outer(SCHEMA).header(statement)
        assert header.names == ("address.city", "count_star()", "m")
        assert header.types == ("BIGINT", "DOUBLE")

    def test_all_parts(self) -> None:
        statement = read_select(
            "SELECT address.city || '!' AS place, count(*) AS n FROM t WHERE address.zip > 1 AND age = 2 "
            "GROUP BY address.city HAVING count(address.zip) > 1 ORDER BY address.city DESC",
            SCHEMA,
        )
        assert statement.where is not None
        assert asked(statement.where) == ["address.zip", "age"]
        header = Outer(SCHEMA).header(statement)
        table = GroupTable([["Oslo", "Rome"]], [["3", "4"], ["2", "2"]], 2, ["VARCHAR"])
        frame = Outer(SCHEMA).run(statement, header, table)
        assert frame.names == ("place", "n")
        assert frame.rows == [("Rome!", 4), ("Oslo!", 3)]

    def test_unknown_ones(self) -> None:
        with pytest.raises(UnknownColumnError) as caught:
            read_select("SELECT address.town, count(*) FROM t GROUP BY 1", SCHEMA)
        assert str(caught.value).splitlines()[-1] == "  " + " " * 7 + "^" * 12
