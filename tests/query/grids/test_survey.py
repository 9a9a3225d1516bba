"""Clauses about columns with a grid: exact in logic, interpolated in measure."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import ModelFileError, QueryTypeError, UnsupportedQueryError
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.grids.scale import scale_of
from countless.query.question import Question
from countless.region import Region
from countless.workload import accepted, count_codes

ROWS = """
SELECT
    CASE WHEN hash(range, 1) % 9 > 0 THEN exp((hash(range, 2) % 100000) / 20000.0) END AS x,
    CASE WHEN hash(range, 3) % 4 = 0 THEN 777 ELSE hash(range, 4) % 100000 END::INTEGER AS i,
    'id-' || lpad((hash(range, 5) % 1000000)::VARCHAR, 7, '0') AS s,
    DATE '2000-01-01' + (hash(range, 6) % 9000)::INTEGER AS d,
    TIMESTAMP '2000-01-01' + INTERVAL (hash(range, 7) % 900000000) SECOND AS t,
    (TIMESTAMP '2000-01-01' + INTERVAL (hash(range, 7) % 900000000) SECOND)::TIMESTAMPTZ AS z,
    TIME '00:00:00' + INTERVAL (hash(range, 8) % 86400) SECOND AS clock,
    ((hash(range, 9) % 1000000) / 100)::DECIMAL(10, 2) AS m,
    CASE WHEN hash(range, 10) % 5 = 0 THEN 'nan' ELSE ((hash(range, 11) % 100000) / 7)::VARCHAR END::FLOAT AS f,
    hash(range, 12) % 3 AS small
FROM range(10000)
"""
CELLS = 50
STEP = 10000 / CELLS  # rows in a cell


@cache
def world() -> tuple[Source, Table, Compiler]:
    connection = connect()
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    source = Source.open(connection.table("t"))
    table = Table.encode(source, EncodeOptions(max_distinct=CELLS, no_text=("s",)))
    assert [column.grid is not None for column in table.schema.coded] == [True] * 9 + [False]
    return source, table, Compiler(table.schema)


def counted(where: str) -> float:
    _, table, compiler = world()
    return count_codes(table, compiler.compile(where).region)


def asked(where: str) -> Question:
    return world()[2].compile(where)


@pytest.mark.parametrize(
    "where",
    [
        "x > 3",
        "x <= 3.25 AND x > 3",
        "x BETWEEN 1.1 AND 1.2 OR x BETWEEN 100 AND 120",
        "NOT x > 10",
        "5 < x",
        "x > 2 AND x <> 2.5 AND NOT x BETWEEN 4 AND 5",
        "i < 50000",
        "i >= 25000.5 AND i < 26000",
        "i > 1e4",
        "i <= '5000'",
        "s < 'id-05'",
        "s >= 'id-0123456' AND s < 'id-02'",
        "d < '2010-01-01'",
        "d >= DATE '2010-01-01' + INTERVAL 7 DAY",
        "d < TIMESTAMP '2010-01-01 12:00:00'",
        "d <= '2010/3/4'",
        "extract(year FROM d) = 2010",
        "t < '2010-05-05 10:00:00.5'",
        "t < TIMESTAMPTZ '2010-05-05 10:00:00+02'",
        "t >= DATE '2019-01-01'",
        "date_trunc('year', t) = '2015-01-01'",
        "z < '2010-01-01'",
        "z BETWEEN TIMESTAMPTZ '2010-01-01 00:00:00+05' AND '2010-07-01'",
        "clock < '12:00:00'",
        "clock BETWEEN TIME '12:00:00' AND TIME '13:00:00'",
        "m < 5000.005",
        "m BETWEEN 100 AND 200",
        "f < 5000",
        "f >= 5000 AND f < 'nan'",
        "s LIKE 'id-09%'",
        "abs(x - 5) < 2",
        "coalesce(x, 0) < 2",
        "x > 3 AND small = 1",
        "x > 3 OR small = 1",
        "(x > 3 AND small = 1) OR (x < 3.5 AND i > 500)",
    ],
)
def test_ranges_are_right_within_the_resolution(where: str) -> None:
    (truth,) = world()[0].counts([where])
    assert counted(where) == pytest.approx(truth, abs=STEP / 2)


@pytest.mark.parametrize(
    "where",
    [
        "x IS NULL",
        "x IS NOT NULL",
        "x > 3 OR x <= 3",
        "x < 3 OR x >= 3",
        "x = 3 OR x <> 3",
        "NOT (x > 3 AND x <= 3)",
        "x > 3 AND x < 3",
        "x BETWEEN 5 AND 4",
        "x > 3 OR x IS NULL OR NOT x > 3",
        "(x > 3) IS NOT TRUE OR x > 3",
        "x < 0.5",
        "x < 1e9",
        "x > NULL",
        "x NOT IN (3, NULL)",
        "i = 777",
        "i <> 777",
        "i IN (777, 1000000)",
        "i = 777.5",
        "i IS NOT DISTINCT FROM 777",
        "i IS NOT DISTINCT FROM NULL::INTEGER",
        "i > 776.5 AND i < 777.5",
        "f = 'nan'",
        "f <> 'nan'",
        "isnan(f)",
        "f <= 'inf'",
        "x > 3 AND x <= 3 AND small = 1",
        "s <> '' AND s < 'j'",
        "m = 1.005",
    ],
)
def test_logic_is_exact(where: str) -> None:
    assert counted(where) == pytest.approx(world()[0].counts([where])[0], abs=1e-6)


def test_what_is_certain_needs_no_column() -> None:
    for where, boxes in (("x > 3 AND x < 3", 0), ("x = 1e9", 0), ("i < 1e9", 1), ("i < 5 OR i >= 5", 1)):
        region = asked(where).region
        assert len(region.boxes) == boxes
        assert all(not box.filters for box in region.boxes)


def test_a_range_within_one_cell_takes_a_fraction_of_it() -> None:
    _, table, compiler = world()
    index = table.schema.find("m")
    assert index is not None
    column = table.schema.coded[index]
    assert column.grid is not None
    low, high = (float(column.values[column.grid.starts[7] + knot]) for knot in (0, 1))
    (box,) = compiler.compile(f"m >= {low} AND m < {(low + high) / 2:.3f}").region.boxes
    weights = accepted([np.arange(column.size)], box.filters[0].constraint)
    assert np.flatnonzero(weights).tolist() == [7]
    assert weights[7] == pytest.approx(1 / 16, rel=0.05)  # half of one part in eight


def test_equality_is_the_mean_count_of_a_value_of_its_cell() -> None:
    table = world()[1]
    index = table.schema.find("d")
    assert index is not None
    column = table.schema.coded[index]
    assert column.grid is not None
    cell = 11
    inside = np.count_nonzero(table.codes[table.schema.positions(index)[0]] == cell)
    knot = column.values[column.grid.starts[cell] + 2]
    assert counted(f"d = '{knot}'") == pytest.approx(inside / column.grid.distinct[cell])
    assert counted(f"d IN ('{knot}', '{knot}')") == counted(f"d = '{knot}'")
    assert counted(f"d <> '{knot}'") == pytest.approx(10000 - counted(f"d = '{knot}'"))
    comparison = asked(f"d = '{knot}'").comparisons[0]
    assert comparison.equality
    assert comparison.values == 1


def test_a_long_list_is_at_most_everything() -> None:
    where = f"x IN ({', '.join(str(1 + k / 1000) for k in range(3000))})"
    assert 0 < counted(where) < counted("x < 4")
    assert counted(f"NOT {where}") == pytest.approx(counted("x IS NOT NULL") - counted(where))


def test_unseen_is_said_only_of_what_cannot_be_there() -> None:
    assert asked("x IN (3, 1e9, 0)").comparisons[0].unseen == ("1e9", "0")
    assert asked("i = 776.5 OR s = 'zzz'").comparisons[1].unseen == ("'zzz'",)
    assert asked("x = 3.0001").comparisons[0].unseen == ()


@pytest.mark.parametrize(
    ("where", "how"),
    [("x > 3", "interpolation"), ("x IS NULL", "search"), ("x % 2 > 1", "knots"), ("i = 5", "interpolation")],
)
def test_how_it_is_known(where: str, how: str) -> None:
    (comparison,) = asked(where).comparisons
    assert (comparison.how, comparison.cells) == (how, world()[1].schema.coded[comparison.column == "i"].null)


@pytest.mark.parametrize(
    ("where", "error", "phrase"),
    [
        ("i = 'old'", QueryTypeError, '"i" is INTEGER: the types do not fit'),
        ("d > 5", QueryTypeError, "Cannot compare values of type DATE"),
        ("s > 5", QueryTypeError, "Cannot compare values of type VARCHAR"),
        ("i = unnest([1, 2])", UnsupportedQueryError, "lists are not computed"),
        ("x > i", UnsupportedQueryError, 'the columns "x" and "i"'),
    ],
)
def test_errors_are_those_of_any_column(where: str, error: type[Exception], phrase: str) -> None:
    with pytest.raises(error, match=phrase):
        asked(where)


NUMBERS = st.floats(0, 160).map(lambda x: f"{x:.6f}") | st.sampled_from(["1", "3", "1000", "-5", "'inf'::DOUBLE"])
SETS = st.one_of(
    st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS).map(lambda p: f"x {p[0]} {p[1]}"),
    st.tuples(NUMBERS, NUMBERS).map(lambda p: f"x BETWEEN {p[0]} AND {p[1]}"),
    st.lists(NUMBERS, min_size=1, max_size=4).map(lambda p: f"x IN ({', '.join(p)})"),
    st.sampled_from(["x IS NULL", "floor(x) % 2 = 0", "i > 500", "coalesce(x, 3) > 2"]),
)
CLAUSES = st.recursive(
    SETS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]} AND {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} OR {p[1]})"),
        inner.map(lambda p: f"NOT ({p})"),
    ),
    max_leaves=5,
)


@given(CLAUSES)
@settings(deadline=None, max_examples=150)
def test_a_clause_and_its_complement_are_everything(clause: str) -> None:
    assert counted(clause) + counted(f"({clause}) IS NOT TRUE") == pytest.approx(10000)


@given(CLAUSES)
@settings(deadline=None, max_examples=150)
def test_weights_are_shares_and_boxes_are_disjoint(clause: str) -> None:
    for box in world()[2].compile(clause).region.boxes:
        for item in box.filters:
            for transitions in item.constraint.transitions:
                assert 0 <= transitions.weights.min() <= transitions.weights.max() <= 1
    _, table, compiler = world()
    inside = sum(count_codes(table, Region((box,))) for box in compiler.compile(clause).region.boxes)
    assert inside == pytest.approx(counted(clause))
    assert inside <= 10000 + 1e-6


@given(st.lists(st.floats(0, 160), min_size=4, max_size=4))
@settings(deadline=None, max_examples=150)
def test_disjoint_ranges_add_up(bounds: list[float]) -> None:
    a, b, c, d = (f"{bound:.9f}" for bound in sorted(bounds))
    one, two = f"x >= {a} AND x < {b}", f"x >= {c} AND x < {d}"
    assert counted(f"{one} OR {two}") == pytest.approx(counted(one) + counted(two), abs=1e-6)


@given(st.floats(0, 200), st.floats(0, 200), st.sampled_from(["<", "<="]))
@settings(deadline=None, max_examples=150)
def test_a_wider_bound_keeps_more(one: float, two: float, operator: str) -> None:
    low, high = sorted((one, two))
    assert counted(f"x {operator} {low:.9f}") <= counted(f"x {operator} {high:.9f}") + 1e-6
    between = counted(f"x >= {low:.9f} AND x < {high:.9f}")
    assert between == pytest.approx(counted(f"x < {high:.9f}") - counted(f"x < {low:.9f}"), abs=1e-6)


def damaged(kind: str, values: tuple[str, ...], shares: tuple[float, ...], distinct: int) -> Compiler:
    return Compiler(Schema(100, (Column("a", kind, values, False, grid=Grid((0,), shares, (distinct,))),)))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER", ("1", "one", "3")),
        ("INTEGER", ("1", "3", "2")),
        ("INTEGER", ("1", "1", "2")),
        ("DOUBLE", ("-inf", "1", "2")),
        ("DOUBLE", ("1", "2", "nan")),
        ("DATE", ("2020-01-01", "2020-02-31", "2020-03-01")),
        ("TIME", ("1", "2", "3")),
    ],
)
def test_knots_that_are_none(kind: str, values: Any) -> None:
    with pytest.raises(ModelFileError, match=r'damaged: the grid of "a" is out of order'):
        damaged(kind, values, (0.0, 0.5, 1.0), 9).compile(
            "a > 1" if kind in ("INTEGER", "DOUBLE") else "a > '12:00:00'"
        )


def test_dates_before_christ_and_far_ahead_have_their_place() -> None:
    compiler = damaged("DATE", ("0044-03-15 (BC)", "0001-01-01", "12020-01-01"), (0.0, 0.5, 1.0), 9)
    (box,) = compiler.compile("a < DATE '0022-03-15 (BC)'").region.boxes
    assert accepted([np.arange(1)], box.filters[0].constraint)[0] == pytest.approx(0.5 * 0.5 * 8 / 9, rel=0.02)


@pytest.mark.parametrize("where", ["s LIKE 'id-00123%'", "starts_with(s, 'id-00123')"])
def test_a_prefix_is_a_range(where: str) -> None:
    assert counted(where) == pytest.approx(counted("s >= 'id-00123' AND s < 'id-00124'"))
    assert counted(where) > 0
    assert counted(f"NOT {where}") == pytest.approx(10000 - counted(where))
    assert asked(where).comparisons[0].how == "interpolation"


@pytest.mark.parametrize("where", ["s LIKE 'id-0_1%'", "s LIKE '%1%'", "s LIKE 'id-01'", "s LIKE '%'"])
def test_other_patterns_are_judged_at_the_knots(where: str) -> None:
    assert {item.how for item in asked(where).comparisons} == {"knots"}


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("text", ["99.99", "0.1", "-3.07", "5.0", "0.0"])
def test_a_decimal_is_equal_to_the_float_that_is_nearest_to_it(kind: str, text: str) -> None:
    """DuckDB compares both as floats."""
    scale = scale_of("DECIMAL(6,2)")
    assert scale.read(kind, text) == scale.read("DECIMAL(6,2)", text)
    assert scale.read("DOUBLE", "99.994") not in (scale.read("DECIMAL(6,2)", "99.99"), None)
    fine = "DECIMAL(12,4)"
    assert scale_of(fine).read(kind, "0.1") == scale_of(fine).read(fine, "0.1")
    assert scale_of("DECIMAL(38,37)").read(kind, "0.1") is None  # neighbours are the same float


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1e+300"])
def test_floats_that_are_no_decimal(text: str) -> None:
    assert scale_of("DECIMAL(6,2)").read("DOUBLE", text) is not None
