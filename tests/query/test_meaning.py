"""What a clause means is what DuckDB says it means: random predicates, counted both ways."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from countless.data.encoding.table import Table
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source, connect
from countless.errors import QueryError, QueryTooLargeError, UnsupportedQueryError
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.domains.comparisons import plain_comparison
from countless.query.parsing.parse import parse
from countless.query.sandbox.process import borrowed
from countless.region import Region
from countless.workload import count_codes

HASH = "CREATE MACRO h(n, stream) AS (hash(n, stream) % 1000003)::BIGINT"
ROWS = """
SELECT
    CASE WHEN h(range, 1) % 7 > 0 THEN (h(range, 2) % 9)::INTEGER - 4 END AS i,
    CASE WHEN h(range, 3) % 6 > 0 THEN ['', 'a', 'B', 'b', 'ab', 'New York', 'é'][1 + h(range, 4) % 7] END AS s,
    CASE WHEN h(range, 5) % 6 > 0 THEN DATE '2020-02-26' + (h(range, 6) % 6)::INTEGER END AS d,
    CASE WHEN h(range, 7) % 6 > 0
        THEN ['nan', '-inf', '0', '0.1', '2.5', 'inf'][1 + h(range, 8) % 6]::DOUBLE END AS x,
    CASE WHEN h(range, 9) % 4 > 0 THEN h(range, 10) % 2 = 0 END AS b,
    CASE WHEN h(range, 11) % 6 > 0 THEN (h(range, 12) % 5)::DECIMAL(6, 2) / 4 END AS m,
    CASE WHEN h(range, 13) % 6 > 0
        THEN TIMESTAMP '2020-02-28 23:00:00' + INTERVAL (h(range, 14) % 5) HOUR END AS "the time",
    CASE WHEN h(range, 15) % 6 > 0
        THEN ['2020-02-28 23:00:00+00', '2020-02-29 00:30:00+00', '2020-02-29 01:00:00+00'][1 + h(range, 16) % 3]
        ::TIMESTAMPTZ END AS z
FROM range(400)
"""


@cache
def world() -> tuple[Source, Table, Compiler]:
    connection = connect()
    connection.execute(HASH)
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    relation = connection.table("t")
    table = Table.encode(relation)
    return Source.open(relation), table, Compiler(table.schema)


INTEGERS = st.integers(-6, 6).map(str)
NUMBERS = INTEGERS | st.sampled_from(["0.5", "-2.5", "1.0", "3.25"])
STRINGS = st.sampled_from(["''", "'a'", "'b'", "'AB'", "'ab'", "'zz'", "'é'", "'New York'", "'O''Hara'"])
DATES = st.sampled_from(
    [
        "'2020-02-27'",
        "DATE '2020-02-28'",
        "'2019-01-01'",
        "DATE '2020-02-22' + INTERVAL 7 DAY",
        "CAST('2020-03-01' AS DATE)",
        "TIMESTAMP '2020-02-28 12:00:00'",
    ]
)
FLOATS = st.sampled_from(["0", "0.1", "2.5", "-1", "1e3", "'nan'::DOUBLE", "'inf'::DOUBLE", "CAST('-inf' AS DOUBLE)"])
BOOLEANS = st.sampled_from(["TRUE", "FALSE"])
TIMES = st.sampled_from(
    ["'2020-02-29'", "TIMESTAMP '2020-02-29 01:00:00'", "'2020-02-29 01:30:00'", "DATE '2020-02-29'"]
)
ZONED = st.sampled_from(
    [
        "'2020-02-29 01:00:00+00'",
        "CAST('2020-02-29 00:30:00+00' AS TIMESTAMP WITH TIME ZONE)",
        "'2020-02-29 03:00:00+02'",
        "CAST('2020-02-28 12:00:00+00' AS TIMESTAMP WITH TIME ZONE)",
    ]
)
LITERALS = {
    "z": ZONED,
    "i": NUMBERS,
    "s": STRINGS,
    "d": DATES,
    "x": FLOATS,
    "b": BOOLEANS,
    "m": NUMBERS,
    '"the time"': TIMES,
}
OPERATORS = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
EXPRESSIONS = st.sampled_from(
    [
        "i % 2 = 0",
        "abs(i) > 2",
        "i + 1 BETWEEN -1 AND 2",
        "upper(s) LIKE 'NEW %'",
        "s ILIKE 'a%'",
        "s NOT LIKE '%b'",
        "length(s) > 1",
        "s || 'x' = 'ax'",
        "coalesce(s, 'a') = 'a'",
        "extract(year FROM d) = 2020",
        "extract(day FROM d) IN (28, 29)",
        "date_trunc('month', d) = DATE '2020-02-01'",
        "isnan(x)",
        "x * 2 > 0.2",
        "b",
        "NOT b",
        "b IS NOT TRUE",
        "b IS FALSE",
        "(i > 2) IS NOT TRUE",
        "CASE WHEN i > 0 THEN TRUE ELSE i < -2 END",
        "i IS NOT DISTINCT FROM 3",
        "regexp_matches(s, '^[ab]+$')",
        "i = -(1 + 1)",
        "1 < 2",
        "NULL",
        "1 = NULL",
        "FALSE",
        "i IN (1, NULL)",
        "i NOT IN (1, NULL)",
        'hour("the time") < 2',
    ]
)


@st.composite
def comparisons(draw: Any) -> str:
    column = draw(st.sampled_from(list(LITERALS)))
    literal = LITERALS[column]
    shape = draw(st.sampled_from(["binary", "flipped", "between", "in", "null"]))
    if shape == "binary":
        return f"{column} {draw(OPERATORS)} {draw(literal)}"
    if shape == "flipped":
        return f"{draw(literal)} {draw(OPERATORS)} {column}"
    negated = draw(st.sampled_from(["", "NOT "]))
    if shape == "between":
        return f"{column} {negated}BETWEEN {draw(literal)} AND {draw(literal)}"
    if shape == "in":
        return f"{column} {negated}IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=4)))})"
    return f"{column} IS {negated}NULL"


PREDICATES = st.recursive(
    comparisons() | EXPRESSIONS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} AND {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        inner.map(lambda part: f"NOT ({part})"),
        st.tuples(inner, st.sampled_from(["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"])).map(
            lambda pair: f"({pair[0]}) IS {pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PREDICATES)
@settings(deadline=None, max_examples=400)
def test_random_predicates_count_as_duckdb_counts(where: str) -> None:
    source, table, compiler = world()
    region = compiler.compile(where).region
    (truth,) = source.counts([where])
    assert count_codes(table, region) == truth
    assert sum(count_codes(table, Region((box,))) for box in region.boxes) == truth  # the boxes are disjoint
    if region.cover:
        assert count_codes(table, Region(region.cover)) == truth


@given(comparisons())
@settings(deadline=None, max_examples=400)
def test_search_agrees_with_duckdb(where: str) -> None:
    _, table, compiler = world()
    condition = parse(where)
    if isinstance(condition, exp.Not):
        condition = condition.this
    (column,) = condition.find_all(exp.Column)
    index = table.schema.find(column.name)
    assert index is not None
    truth = compiler.search.known.truth(index, plain_comparison(condition))
    if truth is not None:
        defined = compiler.domain_tables.truth(index, condition)
        assert truth.true.tolist() == defined.true.tolist()
        assert truth.false.tolist() == defined.false.tolist()


@pytest.mark.parametrize(
    "where",
    [
        "i = 3",
        "3 >= i",
        "i <> -2.5",
        "s IN ('a', 'b')",
        "d >= '2020-02-27'",
        "x < 2.5",
        "b = TRUE",
        "m BETWEEN 0.25 AND 1",
        "i IS NULL",
        "\"the time\" > TIMESTAMP '2020-02-29 01:00:00'",
    ],
)
def test_common_comparisons_are_searched(where: str) -> None:
    (comparison,) = world()[2].compile(where).comparisons
    assert comparison.how == "search"


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("SELECT * FROM t WHERE i > 0", "i > 0"),
        ("select count(*) from t as z where z.i > 0 order by s limit 3", "i > 0"),
        ("WHERE i > 0", "i > 0"),
        ("FROM t WHERE t.i > 0", "i > 0"),
        ("SELECT * FROM t", "TRUE"),
        ("main.t.i > 0", "i > 0"),
        ("\"I\" > 0 AND S = 'a'", "i > 0 AND s = 'a'"),
        ("i > 0 -- positive", "i > 0"),
        ("i >\n0\nAND s = 'a'", "i > 0 AND s = 'a'"),
        ("i = 1 OR i = 2 OR i = 3 AND i = 4", "i IN (1, 2)"),
        ("i > 0 AND i < 3 AND i <> 2", "i = 1"),  # several predicates on one column
    ],
)
def test_ways_to_write_it(where: str, rows: str) -> None:
    source, table, compiler = world()
    assert count_codes(table, compiler.compile(where).region) == source.counts([rows])[0]


@pytest.mark.parametrize(
    "where",
    [
        "'1.5' !~ '[0-9]+' > TRUE",
        "s !~ 'a.*' > FALSE",
        "i NOT IN (1, 2) = FALSE",
        "TRUE = s !~ 'a.*'",
        "i NOT BETWEEN -2 AND 2 = TRUE",
        "NOT i NOT IN (1, 2) = FALSE",
        "(i NOT IN (1, 2) = FALSE) NOT IN (TRUE) = FALSE",
    ],
)
def test_a_not_that_is_compared(where: str) -> None:
    source, table, compiler = world()
    assert count_codes(table, compiler.compile(where).region) == source.counts([where])[0]


def test_an_or_on_one_column_is_one_box() -> None:
    region = world()[2].compile("i = 1 OR i = 2 OR NOT (i < 4)").region
    assert len(region.boxes) == 1
    assert region.cover == ()


def test_an_or_of_columns_is_cut_into_disjoint_boxes() -> None:
    region = world()[2].compile("i = 1 OR s = 'a' OR b").region
    assert len(region.boxes) == 3
    assert len(region.cover) == 3


def test_too_many_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.query.boxes.MOST_BOXES", 5)
    world()[2].compile("i = 1 OR s = 'a' OR b")
    with pytest.raises(QueryTooLargeError, match="more than 5 disjoint boxes: use fewer ORs"):
        world()[2].compile("(i = 1 OR s = 'a') AND (b OR x > 2) AND (d > '2020-02-27' OR m = 1)")


def test_a_long_list_of_ors_is_read() -> None:
    where = " OR ".join(f"i = {k}" for k in range(3000))
    source, table, compiler = world()
    assert count_codes(table, compiler.compile(where).region) == source.counts(["i >= 0"])[0]


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(QueryTooLargeError, match="nested too deeply"):
        world()[2].compile("(" * 5000 + "i = 1" + ")" * 5000)


def test_a_clause_cannot_reach_files_or_settings() -> None:
    for statement in ("SELECT * FROM read_text('/etc/hostname')", "SET enable_external_access = true", "ATTACH 'x.db'"):
        with borrowed() as sandbox, pytest.raises(duckdb.Error):
            sandbox.run(statement)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("whole", [True, False])
def test_the_sign_of_a_zero_is_not_known(kind: str, whole: bool) -> None:
    """The rows themselves do not tell it either."""
    connection = connect()
    connection.execute(f"CREATE TABLE t AS SELECT unnest(['0.0', '-0.0', '1.5', 'nan', '-2.5'])::{kind} AS d, 1 AS k")
    connection.execute(f"INSERT INTO t VALUES (-('nan'::{kind}), 2), (NULL, 3)")
    source, table = Source.open(connection.table("t")), Table.encode(connection.table("t"))
    assert table.schema.signed == ("d",)
    compiler = Compiler(table.schema, EvidenceRows.drawn(source, table.schema, 9, 0) if whole else None)
    refused = ["1 / d < 0", "signbit(d)", "d::VARCHAR = '-0.0'", "NOT (1 / d > 0)", "signbit(d) AND d > 100"]
    for where in [*refused, "1 / d < k", "d > 1 AND 1 / d < k"] if whole else refused:
        with pytest.raises(UnsupportedQueryError, match=r'-0\.0 or -NaN in "d"') as refusal:
            compiler.compile(where)
        remedy = re.search(r"write (\(.*\)) for \"d\"", str(refusal.value))
        assert remedy is not None
        mended = re.sub(r"\bd\b", remedy[1], where)
        question = compiler.compile(mended)
        if where in refused:
            assert count_codes(table, question.region) == source.counts([mended])[0]
    answered = [
        "d = 0",
        "d <= -0.0",
        "abs(d) < 1",
        "isnan(d)",
        "1 / (d + 0.0) > 1",
        "d IS NULL",
        "1 / nullif(d, 0) > 1",
    ]
    for where in answered:
        question = compiler.compile(where)
        assert question.certain
        assert count_codes(table, question.region) == source.counts([where])[0]


@pytest.mark.parametrize(("zeros", "sampled"), [(1, False), (400, False), (400, True)])
def test_the_sign_of_a_zero_is_not_known_in_a_grid(zeros: int, sampled: bool) -> None:
    """Also if zero lies between two knots."""
    values = f"SELECT (range - 4000) / 7 AS d FROM range(9000) UNION ALL SELECT '-0.0'::DOUBLE FROM range({zeros})"
    relation = connect().sql(f"SELECT * FROM ({values}) WHERE d <> 0 OR signbit(d)")
    table = Table.encode(relation, EncodeOptions(max_distinct=64))
    assert table.schema.coded[0].grid is not None
    rows = EvidenceRows.drawn(Source.open(relation), table.schema, 500, 0) if sampled else None
    compiler = Compiler(table.schema, rows)
    for where in ("1 / d < 0", "signbit(d)", "d::VARCHAR = '-0.0'", "NOT (1 / d > 0)"):
        with pytest.raises(UnsupportedQueryError, match=r'-0\.0 or -NaN in "d"'):
            compiler.compile(where)
    for where in ("signbit(nullif(d, 'nan') + 0.0)", "d < 0", "abs(d) > 3"):
        compiler.compile(where)


def test_a_table_without_negative_zeros_has_no_doubt() -> None:
    relation = connect().sql("SELECT unnest([0.0, 0.0, 1.5, -2.5])::DOUBLE AS d")
    source, table = Source.open(relation), Table.encode(relation)
    compiler = Compiler(table.schema)
    for where in ("1 / d < 0", "1 / d > 1", "signbit(d)", "d::VARCHAR = '-0.0'"):
        assert count_codes(table, compiler.compile(where).region) == source.counts([where])[0]


@pytest.mark.parametrize(
    "text", ["x = CAST('\u0661' AS DOUBLE)", "d = '\u0662\u0660\u0662\u0660-02-27'", "i = '\u0663'"]
)
def test_digits_of_other_scripts_are_no_numbers(text: str) -> None:
    with pytest.raises(QueryError, match=r"Could not convert|invalid date"):
        world()[2].compile(text)
