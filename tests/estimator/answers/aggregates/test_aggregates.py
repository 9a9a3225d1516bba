"""Aggregates from how rows are spread: with exact spreads, exactly what DuckDB finds in the table."""

from __future__ import annotations

import datetime
import math
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countless.data.sources.source import connect
from countless.errors import UnknownColumnError, UnsupportedQueryError
from countless.estimator.answers.aggregates.aggregate_intervals import Bars
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape
from countless.estimator.estimator import Estimator
from tests.exact import ExactTable

TYPES = {
    "g": "VARCHAR",
    "h": "BOOLEAN",
    "n": "INTEGER",
    "x": "DOUBLE",
    "f": "FLOAT",
    "money": "DECIMAL(5,2)",
    "day": "DATE",
    "at time": "TIMESTAMP",
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "Łódź", None]),
        st.sampled_from([True, False, None]),
        st.one_of(st.none(), st.integers(-5, 5)),
        st.one_of(st.none(), st.integers(-40, 40).map(lambda whole: whole / 8)),
        st.one_of(st.none(), st.integers(-9, 9).map(lambda whole: whole / 4)),
        st.one_of(st.none(), st.integers(-300, 300).map(lambda whole: f"{whole / 100:.2f}")),
        st.one_of(st.none(), st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 9)).map(str)),
        st.one_of(st.none(), st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 9)).map(str)),
    ),
    min_size=1,
    max_size=25,
)
NUMBERS = st.sampled_from(["n", "x", "f", "money"])
SHARES = st.sampled_from(["0", "0.1", "0.25", "0.5", "0.9", "1"])
AGGREGATES = st.one_of(
    st.just("count(*)"),
    st.sampled_from(list(TYPES)).map(lambda name: f'count("{name}")'),
    st.tuples(
        st.sampled_from(["sum", "avg", "mean", "median", "stddev", "stddev_pop", "variance", "var_samp", "var_pop"]),
        NUMBERS,
    ).map(lambda pair: f"{pair[0]}({pair[1]})"),
    st.tuples(
        st.sampled_from(["quantile_cont", "quantile_disc", "quantile"]),
        st.sampled_from(["n", "x", "f", "money", "day", '"at time"']),
        SHARES,
    ).map(lambda triple: f"{triple[0]}({triple[1]}, {triple[2]})"),
    st.sampled_from(["round(avg(n), 1)", "sum(x) / count(*)", "coalesce(sum(n), 0) + 1", "100 * count(n) / 7"]),
)
WHERES = st.sampled_from(
    ["", "WHERE n > 0", "WHERE g = 'a' OR h", "WHERE x IS NULL", "WHERE n > 3 AND n < 2", "WHERE t.h"]
)
GROUPS = st.lists(st.sampled_from(["g", "h", "n", "day"]), max_size=3, unique=True)


def table_of(rows: list[Any]) -> duckdb.DuckDBPyRelation:
    connection = connect()
    columns = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(TYPES))})", rows)
    return connection.table("t")


def fetched(relation: duckdb.DuckDBPyRelation, sql: str) -> list[tuple[Any, ...]]:
    """The rows that ``sql`` finds in the relation, which it calls t."""
    result = relation.query("t", sql)
    assert result is not None
    return result.fetchall()


def equal(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-6) or (math.isnan(one) and math.isnan(two))
    if isinstance(one, datetime.datetime) and isinstance(two, datetime.datetime):
        return abs(one - two) <= datetime.timedelta(microseconds=1)
    return type(one) is type(two) and bool(one == two)


def sorted_rows(rows: list[tuple[Any, ...]], keys: int) -> list[tuple[Any, ...]]:
    """By the columns that tell groups apart, which stand first."""
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row[:keys]])


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, int, bool]:
    """A statement, how many columns it groups by, which stand first, and whether the order of its rows is told."""
    groups = draw(GROUPS)
    aggregates = draw(st.lists(AGGREGATES, min_size=1, max_size=5))
    having = draw(st.sampled_from(["", "HAVING count(*) > 1", "HAVING sum(n) > 0 OR avg(x) < 1"]))
    sql = f"SELECT {', '.join([*groups, *aggregates])} FROM t {draw(WHERES)}"
    if not groups:
        return f"{sql} {having}", 0, True
    places = ", ".join(str(index) for index in range(1, len(groups) + 1))
    sql += f" GROUP BY {draw(st.sampled_from([', '.join(groups), places, 'ALL']))} {having}"
    ordered = draw(st.booleans())
    return f"{sql} ORDER BY {places} LIMIT 3 OFFSET 1" if ordered else sql, len(groups), ordered


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, asked=st.lists(statements(), min_size=5, max_size=5))
def test_exact_spreads_give_what_duckdb_finds(rows: list[Any], asked: list[tuple[str, int, bool]]) -> None:
    relation = table_of(rows)
    table = ExactTable(relation)
    for sql, keys, ordered in asked:
        result = table.query(sql)
        described = fetched(relation, f"DESCRIBE {sql}")
        assert result.names == tuple(row[0] for row in described)
        assert result.types == tuple(row[1] for row in described)
        expected, actual = fetched(relation, sql), result.rows
        if not ordered:
            expected, actual = sorted_rows(expected, keys), sorted_rows(actual, keys)
        assert len(actual) == len(expected)
        for one, two in zip(actual, expected, strict=True):
            assert all(map(equal, one, two)), (sql, one, two)


SMALL = [
    ("a", True, 1, 0.5, 0.5, "0.01", "2020-01-01", "2020-01-01 00:00:00"),
    ("a", None, 3, None, 0.5, "0.02", "2020-01-02", "2020-01-01 00:00:01"),
    ("b", None, None, None, None, None, None, None),
    (None, False, 7, -2.0, 1.0, "1.00", "2020-01-03", "2020-01-04 12:00:00"),
]


@pytest.fixture(scope="module")
def small() -> ExactTable:
    return ExactTable(table_of(SMALL))


class TestNulls:
    def test_null_is_a_group_of_its_own(self, small: ExactTable) -> None:
        rows = small.query("SELECT g, count(*), count(n), sum(n), avg(n) FROM t GROUP BY g ORDER BY g").rows
        assert rows == [("a", 2, 2, 4, 2.0), ("b", 1, 0, None, None), (None, 1, 1, 7, 7.0)]

    def test_one_row_has_no_sample_deviation(self, small: ExactTable) -> None:
        assert small.query("SELECT stddev(n), stddev_pop(n) FROM t WHERE n = 7").rows == [(None, 0.0)]

    def test_no_rows(self, small: ExactTable) -> None:
        clause = "count(*), count(n), sum(n), avg(n), median(n), stddev(n)"
        assert small.query(f"SELECT {clause} FROM t WHERE n > 100").rows == [(0, 0, None, None, None, None)]
        assert small.query(f"SELECT g, {clause} FROM t WHERE n > 100 GROUP BY g").rows == []

    def test_an_aggregate_of_a_group_itself(self, small: ExactTable) -> None:
        rows = small.query("SELECT n, avg(n), count(n), median(n) FROM t GROUP BY n ORDER BY n").rows
        assert rows == [(1, 1.0, 1, 1.0), (3, 3.0, 1, 3.0), (7, 7.0, 1, 7.0), (None, None, 0, None)]


def test_infinity_and_nan() -> None:
    relation = connect().query("SELECT unnest([1.0, 'inf'::DOUBLE, 'nan'::DOUBLE]) AS x, unnest(['a', 'a', 'b']) AS g")
    sql = "SELECT g, sum(x), avg(x), median(x), quantile_disc(x, 0) FROM t GROUP BY g ORDER BY g"
    rows, expected = ExactTable(relation).query(sql).rows, fetched(relation, sql)
    assert all(
        equal(one, two) for row, truth in zip(rows, expected, strict=True) for one, two in zip(row, truth, strict=True)
    )


def test_times_with_a_zone_are_utc() -> None:
    relation = connect().query("SELECT TIMESTAMPTZ '2020-01-01 12:00:00+02' + to_hours(range) AS moment FROM range(3)")
    table = ExactTable(relation)
    result = table.query("SELECT moment AS m, median(moment) FROM t GROUP BY moment ORDER BY moment DESC LIMIT 1")
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    assert result.types == ("TIMESTAMP WITH TIME ZONE",) * 2
    assert result.rows == [(noon, noon)]
    assert "2020-01-01 12:00:00+00:00" in str(result)


def test_each_column_is_asked_for_once(small: ExactTable) -> None:
    small.asked.clear()
    small.query("SELECT g, avg(n), sum(n), median(n), count(*), avg(x), avg(n) + 1 FROM t GROUP BY g HAVING sum(n) > 1")
    assert small.asked == [("g",), ("g", "n"), ("g", "x")]


@pytest.fixture(scope="module")
def grid() -> tuple[ExactTable, duckdb.DuckDBPyRelation]:
    connection = connect()
    connection.execute(
        "CREATE TABLE t AS SELECT hash(range) % 2 AS g, (hash(range, 1) % 100000) / 100 AS x, "
        "TIMESTAMP '2020-01-01' + to_seconds((hash(range, 2) % 10000000)::BIGINT) AS moment FROM range(4000)"
    )
    relation = connection.table("t")
    return ExactTable(relation), relation


class TestGrids:
    """Of a grid only the cells are known: what is found lies near."""

    def test_numbers_and_times(self, grid: tuple[ExactTable, duckdb.DuckDBPyRelation]) -> None:
        table, relation = grid
        assert table.schema.coded[1].grid is not None
        clause = "count(x), avg(x), sum(x), stddev(x), median(x), quantile_disc(x, 0.9)"
        sql = f"SELECT g, {clause} FROM t GROUP BY g ORDER BY g"
        for row, truth in zip(table.query(sql).rows, fetched(relation, sql), strict=True):
            assert row[:2] == truth[:2]
            assert np.allclose(row[2:], truth[2:], rtol=0.003)
        sql = "SELECT quantile_disc(moment, 0.3), median(moment) FROM t"
        row, truth = table.query(sql).rows[0], fetched(relation, sql)[0]
        assert all(abs((one - two).total_seconds()) < 10_000_000 / 500 for one, two in zip(row, truth, strict=True))

    def test_within_a_cell(self, grid: tuple[ExactTable, duckdb.DuckDBPyRelation]) -> None:
        table, _ = grid
        ends = table.schema.coded[1].values[1:3]  # two knots of the first cell
        low, high = map(float, ends)
        middle = (low + high) / 2
        for where in (f"x BETWEEN {low} AND {high}", f"g >= 0 AND (x >= {low} AND {high} >= x AND x IS NOT NULL)"):
            average, median, deviation = table.query(
                f"SELECT avg(x), median(x), stddev_pop(x) FROM t WHERE {where}"
            ).rows[0]
            assert average == pytest.approx(middle)
            assert low <= median <= high
            assert deviation == pytest.approx((high - low) / math.sqrt(12))
        assert table.query(f"SELECT avg(x) FROM t WHERE x = {high}").rows == [(high,)]

    def test_a_grid_has_no_groups(self, grid: tuple[ExactTable, duckdb.DuckDBPyRelation]) -> None:
        with pytest.raises(UnsupportedQueryError, match="too many values to group by"):
            grid[0].query("SELECT x, count(*) FROM t GROUP BY x")


def calibration(factor: float) -> Calibration:
    """Truths are off by up to ``factor`` in either direction."""
    estimates = np.repeat([1.0, 10.0, 100.0, 1000.0], 100)
    off = np.tile(np.exp(np.linspace(-math.log(factor), math.log(factor), 100)), 4)
    queries = zip((estimates * off).round().astype(int).tolist(), estimates.tolist(), strict=True)
    return Calibration(tuple(CalibrationQuery("", truth, estimate) for truth, estimate in queries))


class TestBars:
    def test_what_was_counted_has_no_width(self, small: ExactTable) -> None:
        result = small.query("SELECT g, count(*), avg(n) AS m FROM t GROUP BY g ORDER BY g", calibration(2))
        assert result.names == ("g", "count_star()", "count_star()_low", "count_star()_high", "m", "m_low", "m_high")
        assert result.rows[0] == ("a", 2, 2, 2, 2.0, 2.0, 2.0)

    def test_they_stand_beside_plain_aggregates_only(self, small: ExactTable) -> None:
        sql = "SELECT round(avg(n)), (sum(n)) AS s, g, 1 + count(*) FROM t GROUP BY g ORDER BY 3 LIMIT 1"
        result = small.query(sql, calibration(2))
        assert result.names == ("round(avg(n))", "s", "s_low", "s_high", "g", "(1 + count_star())")
        assert result.rows == [(2.0, 4, 4, 4, "a", 3)]

    def test_wider_with_larger_errors_and_around_the_mean(self) -> None:
        group_ids, rows = np.array([0, 0, 1, 1]), np.array([500.0, 500.0, 5.0, 5.0])
        amounts = np.array([0.0, 10.0, 0.0, 10.0])
        widths = []
        for factor in (1.1, 2.0):
            bars = Bars(calibration(factor), 10_000, Shape(), certain=False)
            low, high = bars.of_mean(group_ids, rows, amounts, np.array([5.0, 5.0]))
            assert (low >= 0).all()
            assert (high <= 10).all()
            assert np.allclose(low + high, 10)
            widths.append(high - low)
        assert (widths[0] < widths[1]).all()
        assert (widths[0][0] < widths[0][1]).all()  # few rows vary more

    def test_many_groups_are_told_by_two_digits(self) -> None:
        bars = Bars(calibration(2), 100_000, Shape(), certain=False)
        rows = np.linspace(1, 2000, 1500)
        low, high = bars.of_counts(rows)
        few = np.array([1.0, 50.0, 2000.0])
        assert ((low <= rows) & (rows <= high)).all()
        assert np.allclose(bars.of_counts(few)[1], np.interp(few, rows, high), rtol=0.1)

    def test_without_calibration_a_mean_may_be_any(self) -> None:
        bars = Bars(Calibration(()), 100, Shape(), certain=False)
        rows, amounts = np.array([5.0, 5.0]), np.array([1.0, 9.0])
        low, high = bars.of_mean(np.array([0, 0]), rows, amounts, np.array([5.0]))
        assert (low.tolist(), high.tolist()) == ([1.0], [9.0])
        assert [end.tolist() for end in bars.of_counts(np.array([10.0]))] == [[0.0], [100.0]]


class TestEstimators:
    """A real model, of the people."""

    def test_counts_of_the_table_are_exact(self, estimator: Estimator, people: Any) -> None:
        clause = 'city, married, count(*) AS n, avg(age), median("since when")'
        sql = f"SELECT {clause} FROM people GROUP BY ALL ORDER BY n DESC, 1, 2"
        result = estimator.query(sql)
        truth = connect().query(sql.replace("people", f"'{people}'")).fetchall()
        assert [row[:3] for row in result] == [row[:3] for row in truth]
        assert result.count.rows == 3000
        assert result.left_out_rows < 5
        assert result.ms > 0

    def test_with_a_where_and_bars(self, estimator: Estimator) -> None:
        sql = "SELECT city, count(*) AS n, avg(score) AS s FROM t WHERE age > 40 AND married GROUP BY city"
        result = estimator.query(sql, intervals=True)
        rows = result.to_dicts()
        assert abs(sum(row["n"] for row in rows) - result.count.rows) <= len(rows)
        assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in rows)
        assert all(row["s_low"] <= row["s"] <= row["s_high"] for row in rows)
        assert result.disagreement >= 0
        assert estimator.query(sql, intervals=True).rows == result.rows

    def test_without_groups(self, estimator: Estimator) -> None:
        where = "age > 40 AND married AND city = 'Oslo'"
        result = estimator.query(f"SELECT count(*), sum(age) FROM t WHERE {where}", intervals=True)
        expected = estimator.estimate(where)
        count, low, high, *_ = result.rows[0]
        assert (count, low, high) == (round(expected.rows), math.floor(expected.low), math.ceil(expected.high))
        assert estimator.query("SELECT count(*), avg(age) FROM t WHERE FALSE").rows == [(0, None)]

    def test_errors_point_into_the_statement(self, estimator: Estimator) -> None:
        sql = "SELECT count(*)\nFROM t\nWHERE age > 3 AND agee < 4"
        with pytest.raises(UnknownColumnError) as caught:
            estimator.query(sql)
        assert caught.value.clause == sql
        assert caught.value.span is not None
        assert sql[slice(*caught.value.span)] == "agee"
