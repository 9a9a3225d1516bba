"""Conditional distributions against DuckDB and against single estimates."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import numpy as np
import pytest

from countless import Estimator
from countless.data.columns.schema import Column
from countless.data.sources.source import Source, connect
from countless.errors import CountlessError, QueryTypeError, UnknownColumnError, UnsupportedQueryError
from countless.estimator.answers.distributions.bins import bins_of
from countless.estimator.answers.distributions.values import Values
from countless.estimator.fitting.fit import fit
from countless.options import Network

WHERE = "age > 30 AND married AND score < 1.3"


def test_every_value_with_its_share(estimator: Estimator) -> None:
    distribution = estimator.distribution("city", WHERE)
    assert distribution.names == ("city", "share", "rows", "low", "high")
    assert {row[0] for row in distribution} == {"Oslo", "Rome", "New York", "Łódź", None}
    shares, rows, low, high = (np.array([row[index] for row in distribution]) for index in range(1, 5))
    assert shares.sum() == pytest.approx(1.0)
    assert rows.sum() == pytest.approx(estimator.estimate(WHERE).rows)
    assert (np.diff(rows) <= 0).all()
    assert ((low <= rows) & (rows <= high)).all()
    assert distribution.total.where == WHERE


@pytest.mark.parametrize("column", ["age", "city", "married", "since when", "score"])
def test_it_is_what_single_estimates_say(estimator: Estimator, people: Path, column: str) -> None:
    """Before they are made to add up: each value is the exact answer for that value."""
    where = "age > 64 AND score < 1.3 AND city <> 'Rome'"
    joint = estimator.joint([column], where)
    assert joint.exact
    texts = Values(estimator.schema.coded[joint.columns[0]]).texts
    for (code,), rows in zip(joint.codes.tolist(), joint.rows.tolist(), strict=True):
        text = texts[code]
        value = f"\"{column}\" = '{text}'" if text is not None else f'"{column}" IS NULL'
        alone = estimator.estimate(f"({where}) AND {value}", method="exact").rows
        assert rows * (1 + joint.disagreement) == pytest.approx(alone, rel=1e-3, abs=1e-3)


def test_without_a_condition_it_is_counted(estimator: Estimator, people: Path) -> None:
    truth = dict(connect().sql(f"SELECT city, count(*) FROM '{people}' GROUP BY 1").fetchall())
    distribution = estimator.distribution("city")
    assert distribution.counted
    assert {row[0]: row[2] for row in distribution} == truth
    assert all(row[2] == row[3] == row[4] for row in distribution)
    truth = dict(connect().sql(f"SELECT city, count(*) FROM '{people}' WHERE age > 40 GROUP BY 1").fetchall())
    assert {row[0]: row[2] for row in estimator.distribution("city", "age > 40")} == truth


def test_an_or_is_spread_over_all_its_parts(estimator: Estimator, people: Path) -> None:
    where = "city = 'Oslo' AND age > 50 OR married AND score > 0.5"
    truth = dict(connect().sql(f"SELECT city, count(*) FROM '{people}' WHERE {where} GROUP BY 1").fetchall())
    rows = {row[0]: row[2] for row in estimator.distribution("city", where)}
    assert rows.keys() == truth.keys()
    assert all(rows[city] == pytest.approx(truth[city], rel=0.4, abs=10) for city in truth)


def test_two_columns_together(estimator: Estimator, people: Path) -> None:
    distribution = estimator.distribution(["city", "married"], "age > 40 AND score > 0.2")
    assert distribution.names[:2] == ("city", "married")
    assert sum(row[3] for row in distribution) == pytest.approx(distribution.total.rows)
    counted = estimator.distribution(["city", "married"])
    truth = connect().sql(f"SELECT city, married, count(*) FROM '{people}' GROUP BY ALL").fetchall()
    assert counted.counted
    assert {row[:2]: row[3] for row in counted} == {row[:2]: row[2] for row in truth}


def test_bins(estimator: Estimator, people: Path) -> None:
    distribution = estimator.distribution("age", "married", bins=5)
    assert distribution.names[:2] == ("age_from", "age_to")
    for low, high, _, rows, low_bar, high_bar in distribution:
        within = f"age >= {low} AND age {'<=' if high == 70 else '<'} {high}"
        ((truth,),) = connect().sql(f"SELECT count(*) FROM '{people}' WHERE married AND {within}").fetchall()
        assert rows == truth
        assert rows == low_bar == high_bar
    given = estimator.distribution("age", bins=[20, 40.5, 60])
    assert [row[:2] for row in given] == [(20, 40), (40, 60)]
    by_day = estimator.distribution("since when", bins=4)
    assert isinstance(by_day.rows[0][0], datetime.date)
    assert sum(row[3] for row in by_day) == pytest.approx(3000)
    mapped = estimator.distribution(["age", "city"], bins={"age": 3})
    assert mapped.names[:3] == ("age_from", "age_to", "city")
    for bins in ({"AGE": [20, 40, 60]}, [20, 40, 60]):
        assert {row[:2] for row in estimator.distribution(["age", "city"], bins=bins)} == {(20, 40), (40, 60)}


@pytest.mark.parametrize("where", ["TRUE", WHERE])
def test_rows_outside_of_given_edges(estimator: Estimator, people: Path, where: str) -> None:
    distribution = estimator.distribution("age", where, bins=[20, 30, 40])
    total = estimator.estimate(where).rows
    rows = np.array([row[3] for row in distribution])
    assert [row[2] for row in distribution] == pytest.approx(rows / total)
    assert distribution.outside == pytest.approx(total - rows.sum())
    assert f"; {distribution.outside:,.0f} of the rows lie outside the bins" in str(distribution)
    whole = estimator.distribution("age", where, bins=5)
    assert whole.outside == 0
    assert "outside" not in str(whole)
    if distribution.counted:
        ages = connect().sql(f"SELECT age FROM '{people}'").fetchnumpy()["age"]
        assert rows.tolist() == np.histogram(ages, [20, 30, 40])[0].tolist()


@pytest.mark.parametrize(
    ("kind", "values", "edges"),
    [
        ("INTEGER", ("14", "15", "16"), ("14", "15", "16", "17")),
        ("BIGINT", ("-1", "1"), ("-1", "0", "1", "2")),
        ("BIGINT", ("1990", "2020"), tuple(map(str, range(1990, 2022)))),
        ("UTINYINT", ("255",), ("255", "256")),
        ("DECIMAL(4,1)", ("0.5", "0.7"), ("0.5", "0.6", "0.7", "0.8")),
        ("DATE", ("2020-01-30", "2020-02-01"), ("2020-01-30", "2020-01-31", "2020-02-01", "2020-02-02")),
    ],
)
def test_a_bin_for_each_value_where_they_are_few(kind: str, values: tuple[str, ...], edges: tuple[str, ...]) -> None:
    bins = bins_of(Column("n", kind, values, has_null=False), 24)
    assert bins.edges == edges
    assert bins.shares.sum(axis=0).max() == 1


def test_a_bin_for_each_day() -> None:
    edges = [f"2020-01-{day:02}" for day in range(1, 22)]
    assert list(bins_of(days(edges[0], edges[-2]), 20).edges) == edges
    moments = days(f"{edges[0]} 00:00:00", f"{edges[-1]} 00:00:00", "TIMESTAMP")
    assert list(bins_of(moments, 20).edges) == [f"{edge} 00:00:00" for edge in edges]


def days(first: str, last: str, kind: str = "DATE") -> Column:
    return Column("day", kind, (first, last), has_null=False)


@pytest.mark.parametrize(
    ("first", "last", "wanted", "edges"),
    [
        ("2021-01-01", "2021-12-31", 12, [f"2021-{month:02}-01" for month in range(1, 13)] + ["2022-01-01"]),
        ("2020-01-01", "2020-12-31", 12, [f"2020-{month:02}-01" for month in range(1, 13)] + ["2021-01-01"]),
        ("2020-02-29", "2020-12-31", 4, ["2020-01-01", "2020-04-01", "2020-07-01", "2020-10-01", "2021-01-01"]),
        ("1999-05-05", "2001-01-01", 2, ["1999-01-01", "2000-01-01", "2001-01-01"]),
        ("1931-05-05", "1999-05-05", 7, [f"{year}-01-01" for year in range(1930, 2001, 10)]),
        ("0001-05-05 (BC)", "0002-05-05", 3, ["0001-01-01 (BC)", "0001-01-01", "0002-01-01", "0003-01-01"]),
    ],
)
def test_bins_of_times_follow_the_calendar(first: str, last: str, wanted: int, edges: list[str]) -> None:
    assert list(bins_of(days(first, last), wanted).edges) == edges
    if wanted == 12:
        moments = days(f"{first} 00:00:01", f"{last} 23:59:59", "TIMESTAMP")
        assert list(bins_of(moments, wanted).edges) == [f"{edge} 00:00:00" for edge in edges]


def test_the_end_of_time_is_in_no_bin() -> None:
    bins = bins_of(Column("day", "DATE", ("2021-01-01", "2021-12-31", "infinity"), has_null=False), 12)
    assert len(bins.edges) == 13
    assert bins.shares.sum(axis=1).tolist() == [1.0, 1.0, 0.0]


def test_grids_come_in_bins() -> None:
    rows = "SELECT sqrt(hash(range) % 1000003) AS x, (hash(range, 1) % 3)::INTEGER AS kind FROM range(4000)"
    source = Source.open(connect().sql(rows))
    model = fit(
        source, epochs=3, max_distinct=500, network=Network(hidden=32, blocks=1), calibrate=False, evidence="none"
    )
    distribution = model.distribution("x", bins=10)
    for low, high, _, count, *_ in distribution:
        truth = source.rows(f"SELECT count(*) FROM {source.table} WHERE x >= {low} AND x < {high}")[0][0]
        assert count == pytest.approx(truth, abs=12)
    assert len(model.distribution("x", "kind = 1")) > 5


def test_the_order_and_the_looks(estimator: Estimator) -> None:
    by_value = estimator.distribution("age", WHERE, sort="value")
    assert [row[0] for row in by_value] == sorted(row[0] for row in by_value)
    printed = str(estimator.distribution("city", WHERE))
    assert "%" in printed
    assert printed.splitlines()[0].split() == ["city", "share", "rows", "low", "high"]
    assert f"rows where {WHERE}" in printed.splitlines()[-1]
    assert len(str(by_value).splitlines()) == len(by_value) + 2


def test_frames(estimator: Estimator) -> None:
    distribution = estimator.distribution("since when", WHERE)
    frame, table = distribution.to_pandas(), distribution.to_arrow()
    assert list(frame.columns) == list(distribution.names) == table.column_names
    assert str(table.schema.field("since when").type) == "date32[day]"
    assert len(frame) == table.num_rows == len(distribution) == len(distribution.to_polars())


def test_a_condition_that_nothing_meets(estimator: Estimator) -> None:
    assert len(estimator.distribution("city", "age > 30 AND age < 20")) == 0
    assert "0 rows where" in str(estimator.distribution("city", "age > 30 AND age < 20"))


def test_errors(estimator: Estimator) -> None:
    with pytest.raises(UnknownColumnError, match='did you mean "city"'):
        estimator.distribution("cty")
    with pytest.raises(CountlessError, match="does not hold"):
        estimator.distribution("id")
    with pytest.raises(QueryTypeError, match="leave bins out"):
        estimator.distribution("city", bins=[1, 2])
    with pytest.raises(QueryTypeError, match='bins of "agee", which is not among the columns'):
        estimator.distribution("age", bins={"agee": 3})
    with pytest.raises(QueryTypeError, match="sort by"):
        estimator.distribution("city", sort="name")
    with pytest.raises(QueryTypeError, match="greater than the one before"):
        estimator.distribution("age", bins=[3, 2])
    with pytest.raises(QueryTypeError, match="at least 1"):
        bins_of(estimator.schema.coded[0], 0)
    with pytest.raises(UnsupportedQueryError):
        estimator.distribution("city", "age > (SELECT 1)")
    for twice in (["age", "city", "AGE"], ("city", "city")):
        with pytest.raises(QueryTypeError, match="is named twice"):
            estimator.distribution(twice)
    for columns in ([], 5, [5], None):
        with pytest.raises(QueryTypeError, match="give the name of a column, or a list of names"):
            estimator.distribution(columns)  # type: ignore[arg-type]
    for column, bins in itertools.product(("age", "city"), (2.5, "x", True)):
        with pytest.raises(QueryTypeError, match="the number of bins must be a whole number"):
            estimator.distribution(column, bins=bins)  # type: ignore[arg-type]


def test_values_within_groups_are_shifted_as_counts_say(model: Path, people: Path) -> None:
    where = "score <> 0.25"
    sql = f"SELECT married, age, count(*) FROM '{people}' WHERE {where} GROUP BY ALL"
    truth = {(married, age): rows for married, age, rows in connect().sql(sql).fetchall()}

    def off() -> float:
        """Half the sum of differences of shares within the groups."""
        estimator = Estimator.load(model)
        joint = estimator.joint(["married", "age"], where, groups=1)
        assert not joint.counted
        ages = Values(estimator.schema.coded[0]).texts
        rows = {
            (bool(married), int(ages[age] or 0)): count
            for (married, age), count in zip(joint.codes.tolist(), joint.rows.tolist(), strict=True)
        }
        total = 0.0
        for group in (False, True):
            true, here = (
                {age: count for (own, age), count in spread.items() if own is group} for spread in (truth, rows)
            )
            shares = [true.get(age, 0) / sum(true.values()) - here.get(age, 0) / sum(here.values()) for age in true]
            total += sum(map(abs, shares)) / 2
        return total

    shifted = off()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("countless.engine.distributions.joint.MOST_FACTOR", 1.0)
        assert shifted < 0.8 * off()
