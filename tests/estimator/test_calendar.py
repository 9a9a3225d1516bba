"""A model with calendar parts: it answers about them, and nobody sees them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from countless import Estimator, fit, load
from countless.data.sources.source import Source, connect

TABLE = """
SELECT moment AS ts, CASE WHEN hour(moment) < 6 THEN 'idle' ELSE ['busy', 'idle'][1 + range % 2] END AS state,
    (hour(moment) * 100 + hash(range, 1) % 100)::INTEGER AS load
FROM (SELECT range, TIMESTAMP '2020-12-01' + to_seconds((hash(range) % 9000000)::INTEGER) AS moment FROM range(2000))
"""
LATER = "SELECT ts + INTERVAL 1 YEAR AS ts, state, load FROM ({}) LIMIT 400"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calendar") / "table.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def estimator(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Estimator:
    path = tmp_path_factory.mktemp("model") / "table.countless"
    fit(table, evidence=300, epochs=3, hidden=32, blocks=1, max_distinct=600, batch=128, calibrate=False).save(path)
    return load(path)


def test_parts_are_counted(estimator: Estimator, table: Path) -> None:
    source = Source.open(table)
    for where in ("hour(ts) = 3", "hour(ts) < 6 AND state = 'idle'", "month(ts) = 12 AND year(ts) = 2020"):
        estimate = estimator.estimate(where)
        assert estimate.exact
        assert estimate.rows == source.counts([where])[0]


@pytest.mark.parametrize("where", ["hour(ts) < 4 AND load < 300 AND state = 'idle'", "hour(ts) > 20 AND load > 1900"])
def test_the_model_knows_what_parts_have_to_do_with_other_columns(
    estimator: Estimator, table: Path, where: str
) -> None:
    truth = Source.open(table).counts([where])[0]
    estimate = estimator.estimate(where, method="particles")
    assert truth / 2.5 < estimate.rows < truth * 2.5  # if they had nothing to do with each other, it would be a tenth


def test_nobody_sees_them(estimator: Estimator, table: Path) -> None:
    assert len(estimator.schema.calendar) == 4
    assert estimator.columns == ("ts", "state", "load")
    assert "hour(" not in repr(estimator.info())
    assert estimator.sample(3).names == estimator.columns
    assert "hour(" not in repr(estimator.complete(connect().sql("SELECT 'idle' AS state")))
    skipped = estimator.explain("state = 'idle' AND hour(ts) = 3")
    assert skipped.skipped == ("ts", "load")


def test_the_likelihood_of_a_row_is_that_of_its_columns(estimator: Estimator, table: Path) -> None:
    """The parts follow from the timestamp, so that a row has no fewer bits because of them."""
    logs, drawn = estimator.log_prob(table), estimator.sample(200, seed=1).log_probs
    bits = estimator.report["unmasked_bits"]
    within = sum(np.log(column.grid.distinct).mean() for column in estimator.schema.coded if column.grid is not None)
    assert abs(-drawn.mean() / math.log(2) - bits) < 2
    assert abs((-logs.mean() - within) / math.log(2) - bits) < 2


def test_drawn_rows_satisfy_conditions_on_parts(estimator: Estimator) -> None:
    for where in ("hour(ts) = 3 AND month(ts) = 1", "hour(ts) BETWEEN 2 AND 4 AND ts < '2020-12-20'"):
        drawn = estimator.sample(40, where=where)
        assert len(drawn.columns[0]) == 40
        values = "SELECT CAST(unnest($1) AS TIMESTAMP) AS ts, unnest($2)::INTEGER AS load"
        lists = [list(drawn.columns[place]) for place in (0, 2)]
        ((matching, mean),) = (
            connect().execute(f"SELECT count(*), avg(load) FROM ({values}) WHERE {where}", lists).fetchall()
        )
        assert matching == 40
        assert mean < 1000  # of all hours it is about 1,200


def test_new_years_get_codes(estimator: Estimator) -> None:
    updated = estimator.update(connect().sql(LATER.format(TABLE)), epochs=1)
    parts = {part.part: (part.first, part.last) for part in updated.schema.calendar}
    assert parts["year"] == (2020, 2022)
    both = Source.open(connect().sql(f"{TABLE} UNION ALL ({LATER.format(TABLE)})"))
    for where in ("year(ts) = 2022", "hour(ts) = 5", "hour(ts) < 3 AND state = 'idle'", "year(ts) = 2021"):
        assert updated.estimate(where).rows == both.counts([where])[0]


def test_a_check_and_more_training_find_the_parts_in_the_table(estimator: Estimator, table: Path) -> None:
    assert estimator.check(table, queries=0).ok
    trained = estimator.train(table, epochs=1)
    assert trained.schema.calendar == estimator.schema.calendar
    assert trained.estimate("hour(ts) = 3").rows == estimator.estimate("hour(ts) = 3").rows


@pytest.mark.parametrize("spelled", ["hour(ts)", "extract(hour FROM TS)", "date_part('hour', t.ts)"])
def test_groups_by_a_part_are_those_of_the_hidden_column(estimator: Estimator, table: Path, spelled: str) -> None:
    """Without a condition they are counted; under one, the model and 300 evidence rows tell them, and they add up."""
    connection = connect()
    truths = dict(connection.execute(f"SELECT hour(ts), count(*) FROM '{table}' GROUP BY 1").fetchall())
    assert dict(estimator.query(f"SELECT {spelled} AS h, count(*) FROM t GROUP BY 1 ORDER BY h").rows) == truths
    where = "load < 900 AND state = 'idle'"
    result = estimator.query(f"SELECT {spelled}, count(*), avg(load) FROM t WHERE {where} GROUP BY {spelled}")
    sql = f"SELECT hour(ts), count(*), avg(load) FROM '{table}' WHERE {where} GROUP BY 1"
    expected = {hour: (count, mean) for hour, count, mean in connection.execute(sql).fetchall()}
    assert sum(row[1] for row in result.rows) == pytest.approx(result.count.rows, rel=0.02)
    near = [abs(count - expected.get(hour, (0, 0))[0]) for hour, count, _ in result.rows]
    assert sum(near) < 0.5 * result.count.rows
    assert all(mean is None or mean < 900 for _, _, mean in result.rows)


def test_groups_by_two_parts_by_an_expression_and_without_evidence_rows(estimator: Estimator, table: Path) -> None:
    for groups in ("year(ts), month(ts)", "dayofweek(ts), state"):
        sql = f"SELECT {groups}, count(*) FROM {{}} GROUP BY ALL ORDER BY ALL"
        truths = connect().execute(sql.format(f"'{table}'")).fetchall()
        rows = estimator.query(sql.format("t")).rows
        assert [row[:2] for row in rows] == [row[:2] for row in truths if row[2]]
    both = estimator.query("SELECT hour(ts), date_trunc('year', ts), count(*) FROM t GROUP BY 1, 2").rows
    assert sum(row[2] for row in both) == pytest.approx(estimator.rows, rel=0.02)
    bare = estimator.stripped()
    truths = connect().execute(f"SELECT hour(ts), count(*) FROM '{table}' GROUP BY 1 HAVING hour(ts) < 5").fetchall()
    having = bare.query("SELECT hour(ts), count(*) FROM t GROUP BY hour(ts) HAVING hour(ts) < 5").rows
    assert sorted(having) == sorted(truths)
