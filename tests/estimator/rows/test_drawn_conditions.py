"""Every row that is drawn satisfies its condition, as DuckDB has it, and its values look like the table's."""

from __future__ import annotations

import datetime
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.schema import Column, Schema
from countless.data.sources.source import Source, connect
from countless.errors import NoRowsError, UnsupportedQueryError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.rows import sampling
from countless.options import Network, TextNetwork
from countless.query.parsing.parse import parse
from countless.query.row_check import RowCheck
from countless.workload.questions import questions_by_kind

# Whole minutes, three decimals as a float, two as a decimal, multiples of 50, strings in a grid, NULLs, and text.
READINGS = """
SELECT
    (hash(range, 1) % 60)::INTEGER AS meter,
    TIMESTAMP '2008-01-01' + INTERVAL (hash(range, 2) % 2100000) MINUTE AS ts,
    CASE WHEN hash(range, 3) % 9 > 0 THEN round(exp((hash(range, 3) % 10000) / 3000.0), 3) END AS power,
    exp((hash(range, 4) % 10000) / 2000.0)::DECIMAL(10, 2) AS price,
    ((hash(range, 5) % 3000) * 50)::BIGINT AS meters,
    (hash(range, 6) % 1000003 / 7.0)::FLOAT AS raw,
    'n-' || (hash(range, 7) % 100000) AS name,
    ['red', 'green', 'blue'][1 + (hash(range, 8) % 3)::INTEGER] || ' ' || md5(range::VARCHAR)[:4] AS note
FROM range(2500)
"""
MINUTE = 60 * 10**9
CONDITIONS = (
    "ts BETWEEN '2010-03-15 18:00' AND '2010-03-15 19:00'",
    "ts BETWEEN '2010-03-15 18:00' AND '2010-03-15 19:00' AND meter > 30",
    "ts < '2008-02-01' OR power > 20 OR note LIKE 'red%'",
    "hour(ts) = 3",
    "hour(ts) = 3 AND minute(ts) < 30 AND note LIKE '%blue%'",
    "NOT (hour(ts) > 3 OR ts < '2009-01-01')",
    "dayofweek(ts) = 0 AND floor(power) = 7",
    "NOT (power > 1.5) AND meter IN (3, 4, 5)",
    "(power > 1.5) IS NOT TRUE",
    "power > 5 AND power < 5.01",
    "power >= 5.1 AND power <= 5.1",
    "power IS NULL OR price = 3.14",
    "price BETWEEN 3 AND 3.05 AND raw < 50000",
    "raw > 20000 AND raw < 20000.5",
    "meters > 10000 AND meters <= 10050",
    "name = 'n-1234'",
    "name LIKE 'n-12%' AND ts > '2010-01-01'",
    "name LIKE '%7%' OR price > 100",
)


PAIRS = Schema(12, (Column("a", "INTEGER", ("1", "2", "3"), True), Column("b", "VARCHAR", ("x", "y"), True)))


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.open(connect().sql(READINGS))


@pytest.fixture(scope="module")
def readings(source: Source) -> Estimator:
    return fit(
        source,
        max_distinct=100,
        text="note",
        no_text="name",
        epochs=1,
        network=Network(hidden=16, blocks=1, embedding=8),
        text_network=TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64),
        calibrate=False,
        summary=False,
    )


def matching(found: Any, where: str) -> int:
    return Source.open(found.to_arrow()).counts([where])[0]


@pytest.mark.parametrize("where", CONDITIONS)
def test_every_row_satisfies_the_condition(readings: Estimator, where: str) -> None:
    sample = readings.sample(40, where=where, seed=5)
    assert (len(sample), matching(sample, where), sample.requested) == (40, 40, 40)
    assert sample.rows == readings.sample(40, where=where, seed=5).rows


def test_rows_of_random_conditions(readings: Estimator, source: Source) -> None:
    outcomes: Counter[str] = Counter()
    for where, _ in questions_by_kind(source, 3, seed=3):
        try:
            sample = readings.sample(12, where=where)
        except (NoRowsError, UnsupportedQueryError) as error:
            outcomes[type(error).__name__] += 1
            continue
        assert matching(sample, where) == len(sample) > 0, where
        outcomes["whole" if len(sample) == 12 else "fewer"] += 1
    assert outcomes["whole"] >= 30, outcomes
    assert outcomes["fewer"] <= 5, outcomes


def test_the_share_of_a_function_follows_the_table(readings: Estimator) -> None:
    """Hours that no knot has are drawn too, and as often as others."""
    sample = readings.sample(600, where="hour(ts) < 3")
    hours = Counter(ts.hour for ts in sample.to_dicts() for ts in [ts["ts"]])
    assert set(hours) == {0, 1, 2}
    assert min(hours.values()) > 120
    assert len({row["ts"] for row in sample.to_dicts()}) > 400


def test_values_keep_the_granularity_of_the_table(readings: Estimator) -> None:
    steps = {column.name: column.grid.granularity for column in readings.schema.coded if column.grid is not None}
    assert steps.pop("raw") is not None  # a FLOAT has no more digits than that
    assert steps == {
        "ts": Granularity(Fraction(MINUTE)),
        "power": Granularity(Fraction(1, 1000)),
        "price": Granularity(Fraction(1, 100)),
        "meters": Granularity(Fraction(50)),
        "name": None,
    }
    for where in (None, "ts > '2009-05-05 05:05:05.5' AND power > 2.00005 AND meters > 20"):
        for row in readings.sample(60, where=where).to_dicts():
            assert (row["ts"].second, row["ts"].microsecond) == (0, 0)
            assert row["meters"] % 50 == 0
            assert row["power"] is None or row["power"] == round(row["power"], 3)


def test_completed_values_keep_it_too(readings: Estimator) -> None:
    rows = [{"meter": meter, "ts": None, "power": None, "meters": None} for meter in range(12)]
    for draws in (False, True):
        for cell in readings.complete(rows, columns=["ts", "power", "meters"], draws=draws).cells.to_dicts():
            if cell["column"] == "ts":
                assert datetime.datetime.fromisoformat(cell["value"]).second == 0
            elif cell["column"] == "power":
                assert float(cell["value"]) == round(float(cell["value"]), 3)
            else:
                assert int(cell["value"]) % 50 == 0


def test_a_condition_that_no_step_meets_is_met_without_it(readings: Estimator) -> None:
    where = "ts > '2010-03-15 18:00:10' AND ts < '2010-03-15 18:00:20'"
    assert matching(readings.sample(10, where=where), where) == 10


def test_rows_that_fail_are_drawn_again(readings: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that refuses most rows leaves fewer, and says so; one that refuses all is an error."""
    allows, checks = RowCheck.allows, []

    def strict(self: RowCheck, columns: Any, cut: Any, rows: int) -> Any:
        checks.append(rows)
        return allows(self, columns, cut, rows) & (np.arange(rows) % 50 == 0)

    monkeypatch.setattr(RowCheck, "allows", strict)
    sample = readings.sample(100, where="meter > 3")
    assert sample.requested == 100
    assert 1 <= len(sample) < 100
    assert len(sample) == matching(sample, "meter > 3") == len(sample.log_probs) == len(sample.cut)
    assert sample.effective_size <= len(sample)
    assert len(checks) == sampling.MAX_ROUNDS
    assert max(checks) <= 100 * sampling.MAX_DRAWS_PER_ROW
    monkeypatch.setattr(RowCheck, "allows", lambda self, columns, cut, rows: np.zeros(rows, dtype=np.bool_))
    with pytest.raises(NoRowsError, match=r"rows were drawn, and none satisfies .* ask for a wider condition"):
        readings.sample(5, where="meter > 3")


def test_what_no_known_value_has(readings: Estimator) -> None:
    with pytest.raises(NoRowsError, match=r"none of the values that the model knows .* higher max_distinct"):
        readings.sample(5, where="name LIKE '%-unheard-of'")


@pytest.mark.parametrize(
    "where",
    [
        "a > 2 AND b = 'x'",
        "NOT (a > 2 OR b = 'x')",
        "(a > 2 AND b = 'x') IS NOT TRUE",
        "(a > 2 OR b IS NULL) IS FALSE",
        "a IS NULL OR NOT b LIKE 'y%'",
        "a + 1 > 3 OR upper(b) IN ('X', NULL)",
        "TRUE AND (1 = 1 OR a = 1)",
        "FALSE",
    ],
)
def test_the_check_is_duckdbs(where: str) -> None:
    rows = [(a, b) for a in (None, 1, 2, 3) for b in (None, "x", "y")]
    connection = connect()
    connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    kept = set(connection.execute(f"SELECT a, b FROM t WHERE {where}").fetchall())
    check = RowCheck(PAIRS, parse(where))
    columns = {0: [None if a is None else str(a) for a, _ in rows], 1: [b for _, b in rows]}
    found = check.allows(columns, {}, len(rows))
    assert {row for row, allowed in zip(rows, found.tolist(), strict=True) if allowed} == kept


def test_a_text_that_is_cut_may_satisfy_what_is_asked_of_it() -> None:
    columns = {0: ["1", "1", "2"], 1: ["x", "x", "x"]}
    cut = {1: np.array([False, True, True])}
    for where in ("a = 1 AND b LIKE '%z'", "NOT (a > 1 OR b LIKE 'x%')", "(a = 1 AND b LIKE '%z') IS TRUE"):
        assert RowCheck(PAIRS, parse(where)).allows(columns, cut, 3).tolist() == [False, True, False], where
