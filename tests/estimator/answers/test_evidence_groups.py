"""Groups and aggregates from the model and the evidence rows together, beside what DuckDB finds in the table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import countless
from countless.data.columns.schema import Column
from countless.data.sources.source import connect
from countless.errors import QueryTypeError, UnsupportedQueryError
from countless.estimator.answers.aggregates.aggregate_intervals import Bars
from countless.estimator.answers.aggregates.group_fusion import counts_of_hits, fused_counts
from countless.estimator.answers.aggregates.mean_fusion import fused_means
from countless.estimator.answers.aggregates.value_distributions import (
    ColumnSample,
    FusedValueDistribution,
    GroupValueDistribution,
)
from countless.estimator.answers.distributions.values import Values
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import Calibration, Shape
from countless.estimator.estimator import Estimator
from countless.options import Network
from countless.query.select.selection import Aggregate

# Power depends on the hour, which a grid of timestamps does not tell; current nearly determines power.
METERS = """
SELECT ts, meter, round(load * (0.8 + 0.4 * (hash(i, 7) % 1000) / 1000), 3) AS power,
    round(load * 4.3, 2) AS current, ['Oslo', 'Rome', 'Bern', 'Lima'][1 + (hash(i, 3) % 10 // 3)::INTEGER] AS city,
    CASE WHEN hash(i, 11) % 5 > 0 THEN hash(i, 12) % 7 END AS grade
FROM (
    SELECT i, TIMESTAMP '2010-01-01' + to_minutes((hash(i) % 525600)::INTEGER) AS ts,
        (hash(i, 2) % 60)::INTEGER AS meter,
        CASE WHEN hour(ts) BETWEEN 1 AND 5 THEN 0.4 ELSE 1.2 END * (1 + meter / 60) AS load
    FROM range(12000) AS numbers(i)
)
"""
ADULT = Path(countless.__file__).parent / "data" / "adult.parquet"
SMALL = Network(hidden=16, blocks=1, embedding=8)
Compared = list[tuple[Any, Any, Any, Any]]
ENOUGH = 0.87  # of the error bars hold, at least


class Both:
    """A table, and a model of it."""

    def __init__(self, table: Path, estimator: Estimator) -> None:
        self.estimator = estimator
        self._table = connect().execute(f"CREATE TABLE t AS SELECT * FROM '{table}'")

    def truth(self, sql: str) -> list[Any]:
        return self._table.execute(sql).fetchall()

    def compared(self, sql: str, keys: int) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Answer, low, high and truth of every aggregate of every group that both know; keys stand first."""
        truths = {row[:keys]: row[keys:] for row in self.truth(sql)}
        result = self.estimator.query(sql, intervals=True)
        for row in result.rows:
            for index, truth in enumerate(truths.get(row[:keys], ())):
                answer, low, high = row[keys + 3 * index : keys + 3 * index + 3]
                if truth is not None and answer is not None:
                    yield answer, low, high, truth


def coverage(compared: Compared) -> float:
    return float(np.mean([low <= truth <= high for _, low, high, truth in compared]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("meters") / "meters.parquet"
    connect().execute(f"COPY ({METERS}) TO '{path}'")
    return path


def fitted(table: Path, evidence: str, **more: Any) -> Both:
    """A model that has hardly learned anything."""
    options: dict[str, Any] = {"epochs": 1, "summary": False, "calibrate": False, "batch": 2000, "network": SMALL}
    return Both(table, countless.fit(table, evidence=evidence, **(options | more)))


@pytest.fixture(scope="module")
def meters(table: Path) -> Both:
    return fitted(table, "3000")


@pytest.fixture(scope="module")
def whole(table: Path) -> Both:
    return fitted(table, "all")


@pytest.fixture(scope="module")
def alone(table: Path) -> Both:
    return fitted(table, "none")


@pytest.fixture(scope="module")
def adult() -> Both:
    columns = ["age", "education", "sex", "race", "hours_per_week", "income"]
    return fitted(ADULT, "5000", columns=columns)


WHERES = ("TRUE", "hour(ts) BETWEEN 2 AND 4", "city = 'Rome' AND meter > 30", "power * 4 > current", "grade = 3")


class TestDistributions:
    @pytest.mark.parametrize("where", WHERES)
    def test_they_add_up_and_their_bars_hold(self, meters: Both, where: str) -> None:
        held = []
        for column in ("city", "grade", "meter"):
            distribution = meters.estimator.distribution(column, where)
            assert sum(row[-3] for row in distribution.rows) == pytest.approx(distribution.total.rows)
            assert not distribution.counted
            truths = dict(meters.truth(f"SELECT {column}, count(*) FROM t WHERE {where} GROUP BY 1"))
            held += [low <= truths.get(value, 0) <= high for value, _, _, low, high in distribution.rows]
        assert np.mean(held) >= ENOUGH

    def test_bins_count_the_values_and_not_the_cells(self, meters: Both) -> None:
        where, held = "meter < 20", []
        edges = [f"2010-{month:02}-01" for month in range(1, 13)] + ["2011-01-01"]
        distribution = meters.estimator.distribution("ts", where, bins=edges)
        assert sum(row[-3] for row in distribution.rows) == pytest.approx(distribution.total.rows)
        for start, end, _, _, low, high in distribution.rows:
            ((truth,),) = meters.truth(f"SELECT count(*) FROM t WHERE {where} AND ts >= '{start}' AND ts < '{end}'")
            held.append(low <= truth <= high)
        assert np.mean(held) >= ENOUGH
        partly = meters.estimator.distribution("ts", where, bins=edges[:4])
        assert partly.outside + sum(row[-3] for row in partly.rows) == pytest.approx(partly.total.rows)

    def test_many_at_once_are_the_same(self, meters: Both) -> None:
        where = "hour(ts) < 9"
        for distribution in meters.estimator.distributions(["city", "grade"], where):
            alone = meters.estimator.distribution(distribution.names[0], where)
            assert {row[0] for row in distribution.rows} == {row[0] for row in alone.rows}
            assert sum(row[-3] for row in distribution.rows) == pytest.approx(distribution.total.rows)

    def test_a_clause_that_only_rows_answer(self, meters: Both) -> None:
        distribution = meters.estimator.distribution("city", "power > current / 4")
        truths = dict(meters.truth("SELECT city, count(*) FROM t WHERE power > current / 4 GROUP BY 1"))
        assert all(low <= truths[city] <= high for city, _, _, low, high in distribution.rows)

    def test_the_whole_table_is_counted(self, whole: Both) -> None:
        for where in WHERES:
            distribution = whole.estimator.distribution("grade", where)
            assert distribution.counted
            truths = dict(whole.truth(f"SELECT grade, count(*) FROM t WHERE {where} GROUP BY 1"))
            assert {value: rows for value, _, rows, _, _ in distribution.rows} == truths
            assert all(rows == low == high for _, _, rows, low, high in distribution.rows)

    def test_counts_that_the_model_holds_stay_exact(self, table: Path) -> None:
        both = fitted(table, "3000", summary=True, columns=["city", "grade", "meter"])
        truths = dict(both.truth("SELECT city, count(*) FROM t WHERE grade = 3 GROUP BY city"))
        for distribution in (both.estimator.distribution("city", "grade = 3"), both.estimator.distribution("city")):
            assert distribution.counted
        assert dict(both.estimator.query("SELECT city, count(*) FROM t WHERE grade = 3 GROUP BY city").rows) == truths
        for answer, low, high, truth in both.compared("SELECT city, count(*), avg(meter) FROM t GROUP BY city", 1):
            assert answer == low == high == pytest.approx(truth)

    def test_pairs(self, adult: Both) -> None:
        compared: Compared = []
        where = "age BETWEEN 30 AND 50 AND income = '>50K'"
        distribution = adult.estimator.distribution(["education", "sex"], where)
        truths = adult.truth(f"SELECT education, sex, count(*) FROM t WHERE {where} GROUP BY ALL")
        known = {(education, sex): count for education, sex, count in truths}
        for education, sex, _, rows, low, high in distribution.rows:
            compared.append((rows, low, high, known.get((education, sex), 0)))
        assert coverage(compared) >= ENOUGH
        assert sum(rows for rows, *_ in compared) == pytest.approx(distribution.total.rows)


class TestAggregates:
    def test_a_mean_that_the_model_does_not_know(self, meters: Both, alone: Both) -> None:
        sql = "SELECT avg(power), median(power), sum(power) FROM t WHERE hour(ts) = 4"
        for answer, low, high, truth in meters.compared(sql, 0):
            assert low <= truth <= high
            assert answer == pytest.approx(truth, rel=0.2)
        truth = meters.truth("SELECT avg(power) FROM t WHERE hour(ts) = 4")[0][0]
        assert alone.estimator.query("SELECT avg(power) FROM t WHERE hour(ts) = 4").rows[0][0] > 1.5 * truth

    def test_by_group(self, meters: Both) -> None:
        compared: Compared = []
        for where in WHERES:
            clause = "count(*), count(grade), avg(power), sum(current), stddev(power), median(current)"
            compared += meters.compared(f"SELECT city, {clause} FROM t WHERE {where} GROUP BY city", 1)
            compared += meters.compared(f"SELECT meter, {clause} FROM t WHERE {where} GROUP BY meter", 1)
        assert len(compared) > 500
        assert coverage(compared) >= ENOUGH

    def test_by_group_of_adults(self, adult: Both) -> None:
        clause = "count(*), avg(age), sum(hours_per_week), median(age), quantile_cont(hours_per_week, 0.9)"
        compared: Compared = []
        for where in ("TRUE", "sex = 'Female' AND age > 40", "hours_per_week > 45 AND income = '>50K'"):
            for by in ("education", "race, sex", "income"):
                keys = len(by.split(","))
                compared += adult.compared(f"SELECT {by}, {clause} FROM t WHERE {where} GROUP BY {by}", keys)
        assert coverage(compared) >= ENOUGH
        means = [(answer, truth) for answer, *_, truth in compared[1::5] if truth]
        assert np.median([abs(math.log(answer / truth)) for answer, truth in means]) < 0.05

    @pytest.mark.parametrize("where", WHERES)
    def test_the_whole_table_is_exact(self, whole: Both, where: str) -> None:
        aggregates = "count(*), count(grade), sum(grade), avg(power), stddev(power), var_pop(current), median(power), "
        aggregates += "quantile_disc(ts, 0.3), quantile_cont(power, 0.9)"
        sql = f"SELECT city, {aggregates} FROM t WHERE {where} GROUP BY city"
        compared = list(whole.compared(sql, 1))
        assert len(compared) == 9 * len(whole.truth(f"SELECT DISTINCT city FROM t WHERE {where}"))
        for answer, low, high, truth in compared:
            assert answer == low == high == (pytest.approx(truth) if isinstance(truth, float) else truth)


class TestExpressions:
    @pytest.mark.parametrize(
        ("by", "asked"),
        [
            ("hour(ts)", "count(*), avg(power), sum(power)"),
            ("date_trunc('month', ts)", "count(*), median(power + current), count(grade)"),
            ("city, extract('hour' FROM ts) // 6", "count(*), stddev(power * 2), avg(grade)"),
            ("city", "count(*), avg(power + current), sum(CASE WHEN meter > 30 THEN 1 ELSE 0 END)"),
            ("upper(city)", "quantile_cont(power, 0.5), quantile_disc(meter, 0.4)"),
        ],
    )
    def test_bars_hold_and_groups_add_up(self, meters: Both, by: str, asked: str) -> None:
        keys = by.count(", e") + 1
        compared: Compared = []
        for where in WHERES:
            sql = f"SELECT {by}, {asked} FROM t WHERE {where} GROUP BY {by}"
            compared += meters.compared(sql, keys)
            result = meters.estimator.query(sql)
            if "count(*)" in asked:
                rows = result.count.rows - result.left_out_rows
                assert sum(row[keys] for row in result.rows) == pytest.approx(rows, abs=len(result.rows))
        assert len(compared) > 20
        assert coverage(compared) >= ENOUGH

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT hour(ts) AS h, count(*) AS n, avg(power) FROM t GROUP BY h HAVING h < 4 ORDER BY h",
            "SELECT hour(ts) + 1, count(*) FROM t WHERE city = 'Oslo' GROUP BY HOUR(t.TS) ORDER BY 1 LIMIT 3",
            "SELECT grade % 3, city, sum(grade * 2), min_power FROM (SELECT 1) GROUP BY ALL",
            "SELECT strftime(ts, '%Y-%m') AS month, avg(length(city)) FROM t GROUP BY ALL ORDER BY month DESC",
            "SELECT meter > 30, count(*), sum(meter > 50), avg(power) > 1 FROM t GROUP BY 1 ORDER BY 1",
            "SELECT ts::DATE, city, count(*) FROM t WHERE grade IS NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 5",
            "SELECT median(power - current), quantile_disc(ts::DATE, 0.5) FROM t WHERE meter + grade > 40",
        ],
    )
    def test_the_whole_table_gives_what_duckdb_gives(self, whole: Both, sql: str) -> None:
        if "(SELECT" in sql:
            with pytest.raises(UnsupportedQueryError, match="subquery"):
                whole.estimator.query(sql)
            return
        result = whole.estimator.query(sql)
        described = whole.truth(f"DESCRIBE {sql}")
        assert (result.names, result.types) == (tuple(r[0] for r in described), tuple(r[1] for r in described))
        for row, truth in zip(result.rows, whole.truth(sql), strict=True):
            assert row == tuple(pytest.approx(value) if isinstance(value, float) else value for value in truth)

    def test_without_evidence_rows_they_are_errors_that_say_so(self, alone: Both) -> None:
        for sql in ("SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1", "SELECT avg(power + current) FROM t"):
            with pytest.raises(UnsupportedQueryError, match="fitted with evidence rows answers it"):
                alone.estimator.query(sql)

    @pytest.mark.parametrize(
        ("sql", "error", "message"),
        [
            ("SELECT avg(city || 'x') FROM t", QueryTypeError, "DuckDB cannot compute"),
            ("SELECT sum(avg(power)) FROM t", UnsupportedQueryError, "no value for a single row"),
            ("SELECT sum(power * (SELECT 1)) FROM t", UnsupportedQueryError, "subquery"),
            ("SELECT sum(len(repeat(city, 9))) FROM t", UnsupportedQueryError, "repeat"),
            ("SELECT ts, count(*) FROM t GROUP BY ts", UnsupportedQueryError, "too many values"),
            ("SELECT hour(ts), city, count(*) FROM t GROUP BY hour(ts)", UnsupportedQueryError, "not grouped"),
            ("SELECT hour(tss), count(*) FROM t GROUP BY 1", countless.errors.UnknownColumnError, "tss"),
        ],
    )
    def test_what_is_refused(self, meters: Both, sql: str, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            meters.estimator.query(sql)

    def test_no_hits(self, meters: Both) -> None:
        result = meters.estimator.query("SELECT hour(ts), count(*) FROM t WHERE power > 100 GROUP BY 1")
        assert result.rows == []
        assert meters.estimator.query("SELECT avg(power + 1) FROM t WHERE power > 100").rows == [(None,)]


def total(rows: float, low: float, high: float) -> Estimate:
    return Estimate("", rows, 0.1, low, high, 0.9, "fused", False, 0.0)


class TestFusion:
    """The formulas, by themselves."""

    def test_a_good_model_is_kept_and_a_wrong_one_is_not(self) -> None:
        prior, few, many = np.array([700.0, 300.0]), np.array([1.0, 0.0]), np.array([20.0, 80.0])
        errors = np.array([0.1, 0.1])
        assert np.allclose(fused_counts(prior, few, total(1000, 900, 1100), 1, errors).rows, prior, rtol=0.1)
        wrong = fused_counts(prior, many, total(1000, 900, 1100), 100, errors)
        assert wrong.rows[1] > 700
        assert wrong.rows.sum() == pytest.approx(1000)
        assert (wrong.low <= wrong.rows).all()
        assert (wrong.rows <= wrong.high).all()

    def test_a_group_that_the_model_does_not_know(self) -> None:
        counts = fused_counts(
            np.array([1000.0, 0.0]), np.array([95.0, 5.0]), total(1000, 950, 1050), 100, np.full(2, 0.3)
        )
        assert 20 < counts.rows[1] < 60
        assert counts.low[1] >= 5

    def test_what_lies_in_no_group_keeps_its_rows(self) -> None:
        counts = fused_counts(np.array([100.0]), np.array([10.0]), total(1000, 900, 1100), 100, np.array([0.2]))
        assert counts.rows[0] == pytest.approx(100, rel=0.05)

    def test_all_rows_are_hits(self) -> None:
        seen = np.array([30.0, 0.0, 12.0])
        for found in (
            fused_counts(np.array([10.0, 20.0, 12.0]), seen, total(42, 42, 42), 42, np.full(3, 0.1)),
            counts_of_hits(seen, total(42, 42, 42), 42),
        ):
            assert found.rows.tolist() == found.low.tolist() == found.high.tolist() == seen.tolist()

    def test_bars_of_counts_hold(self) -> None:
        rng = np.random.default_rng(5)
        truths = np.repeat([3.0, 30.0, 300.0, 3000.0], 100)
        hits = rng.binomial(truths.astype(int), 0.1).astype(float)
        everything = float(truths.sum())
        for errors in (0.1, 0.5):
            prior = truths * np.exp(rng.normal(0, errors, len(truths)))
            prior *= everything / prior.sum()
            whole = total(everything, everything, everything)
            counts = fused_counts(prior, hits, whole, int(hits.sum()), np.full(len(truths), errors))
            assert np.mean((counts.low <= truths) & (truths <= counts.high)) >= ENOUGH
            better = np.abs(np.log(counts.rows / truths)).mean() / np.abs(np.log(prior / truths)).mean()
            assert better < (0.75 if errors == 0.5 else 1.25)

    def test_values_of_a_group_that_the_model_does_not_know(self) -> None:
        values = Values(Column("n", "INTEGER", ("1", "3", "9"), has_null=False))
        group_ids, codes = np.array([0, 0, 1]), np.array([0, 1, 2])
        bars = Bars(Calibration(()), 1000, Shape(), certain=False)
        model = GroupValueDistribution(values, 2, group_ids, codes, np.array([40.0, 60.0, 0.0]), bars)
        sample = ColumnSample.of(values, 2, np.array([1] * 30), np.array([2] * 30), np.array([2] * 30))
        fused = FusedValueDistribution(model, sample, np.array([100.0, 300.0]), np.array([120.0, 400.0]))
        assert fused.means == pytest.approx([2.2, 9.0])
        assert fused.quantiles(Aggregate("median", 0, "0.5"), "DOUBLE") == ["3", "9"]

    def test_means_of_few_and_of_many_hits(self) -> None:
        model_moments = np.array([5.0, 5.0]), np.array([0.5, 0.5]), np.array([1.0, 1.0])
        group_ids, amounts = np.array([0, 0] + [1] * 400), np.array([6.0, 6.2] + [8.0, 9.0] * 200)
        means = fused_means(model_moments, group_ids, amounts, (np.full(2, 1e5), np.full(2, 1e5)), 0.9)
        assert 5 < means.means[0] < 6
        assert means.means[1] == pytest.approx(8.5, abs=0.01)
        assert means.errors[1] < means.errors[0]
        everything = fused_means(
            model_moments, group_ids, amounts, (np.array([2.0, 400.0]), np.array([2.0, 400.0])), 0.9
        )
        assert everything.means == pytest.approx([6.1, 8.5])
        assert everything.errors.tolist() == [0, 0]
