"""Evidence rows and the model together: the default answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from countless.data.sources.source import Source, connect
from countless.engine.methods import of_model
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import Network

TABLE = """
SELECT
    TIMESTAMP '2010-01-01' + INTERVAL 1 MINUTE * (7 * range % 500000)::INTEGER AS moment,
    (hash(range) % 40)::INTEGER AS small,
    ((hash(range) % 40) / 4 + hash(range, 6) % 3)::INTEGER AS follows,
    round((hash(range, 2) % 100000) / 7, 2) AS wide,
    ['a', 'b', 'c'][1 + (hash(range, 5) % 3)::INTEGER] AS letter
FROM range(12000)
"""
SMALL: dict[str, Any] = {
    "epochs": 3,
    "max_distinct": 300,
    "network": Network(hidden=32, blocks=1, embedding=8),
}
CLAUSES = [
    "small > 30 AND follows > 8",
    "small = 3 AND letter = 'a'",
    "hour(moment) = 3",
    "hour(moment) BETWEEN 2 AND 4 AND small > 35",
    "wide < 20 AND letter <> 'b'",
    "small = 1 AND follows = 12",
    "wide > 5000 OR letter = 'c'",
    "follows > small AND letter = 'a'",
    "NOT (small < 38 OR wide < 100)",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fused") / "table.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def sampled(table: Path) -> Estimator:
    return fit(table, evidence=3_000, **SMALL)


@pytest.fixture(scope="module")
def whole(table: Path) -> Estimator:
    return fit(table, evidence="all", **SMALL)


@pytest.fixture(scope="module")
def bare(table: Path) -> Estimator:
    return fit(table, evidence="none", **SMALL)


def truths(table: Path) -> list[int]:
    return Source.open(table).counts(CLAUSES)


def test_whole_table_is_counted(table: Path, whole: Estimator) -> None:
    for where, truth in zip(CLAUSES, truths(table), strict=True):
        answer = whole.estimate(where)
        assert (answer.rows, answer.low, answer.high, answer.exact) == (truth, truth, truth, True)
    assert "counted in the evidence rows" in str(whole.explain(CLAUSES[0]))
    grown = whole.estimate(CLAUSES[0], table_rows=24_000)
    assert not grown.exact
    assert grown.rows == pytest.approx(2 * truths(table)[0])


def test_answers_are_near_and_bars_hold(table: Path, sampled: Estimator) -> None:
    errors, inside = [], []
    for where, truth in zip(CLAUSES, truths(table), strict=True):
        answer = sampled.estimate(where)
        assert answer.method == "fused"
        assert answer.low <= answer.rows <= answer.high
        errors.append(q_error(answer.rows, truth))
        inside.append(answer.low <= truth <= answer.high)
    assert np.median(errors) < 1.1
    assert max(errors) < 4
    assert sum(inside) >= len(inside) - 2


def test_hits_and_the_model_are_told(sampled: Estimator) -> None:
    many = sampled.estimate("small < 35 AND follows < 9 AND letter < 'c'")
    assert many.hits is not None
    assert many.hits > 500
    few = sampled.estimate("small = 1 AND follows = 1 AND wide < 100 AND letter = 'a'")
    assert few.model_rows is not None
    assert (few.evidence_rows, many.evidence_rows) == (3_000, 3_000)
    assert "it was asked because few evidence rows match" in str(sampled.explain(few.where))
    assert "not asked" in str(sampled.explain("hour(moment) < 22 AND small < 38 AND wide < 13500"))


def test_many_at_once_are_the_same(sampled: Estimator) -> None:
    one_by_one = [sampled.estimate(where) for where in CLAUSES * 3]
    for one, other in zip(one_by_one, sampled.estimate_many(CLAUSES * 3), strict=True):
        assert (one.hits, one.exact, one.method) == (other.hits, other.exact, other.method)
        assert other.rows == pytest.approx(one.rows, rel=1e-6)
        assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-6)


def test_comparisons_of_columns(table: Path, sampled: Estimator, bare: Estimator) -> None:
    where = "4 * follows > small AND letter = 'a'"
    (truth,) = Source.open(table).counts([where])
    assert q_error(sampled.estimate(where).rows, truth) < 1.5
    assert "only the evidence rows can answer 4 * follows > small" in str(sampled.explain(where))
    for method in of_model():
        with pytest.raises(UnsupportedQueryError, match="only evidence rows can answer"):
            sampled.estimate(where, method=method)
        with pytest.raises(UnsupportedQueryError, match="only evidence rows can answer"):
            sampled.explain(where, method=method)
    with pytest.raises(UnsupportedQueryError, match="compare each column with values"):
        bare.estimate(where)


def test_all_rows_and_none(sampled: Estimator) -> None:
    every = sampled.estimate("small >= follows - 100")
    assert (every.rows, every.high) == (12_000, 12_000)
    none = sampled.estimate("small < follows - 100")
    assert (none.rows, none.low) == (0, 0)
    assert none.high > 1


def test_without_evidence_rows_the_model_answers(bare: Estimator) -> None:
    answer = bare.estimate(CLAUSES[0])
    assert (answer.method, answer.hits) == ("particles", None)
    assert answer.rows == bare.estimate(CLAUSES[0], method="particles").rows


def test_model_alone_is_as_without_evidence(sampled: Estimator, bare: Estimator) -> None:
    for where in CLAUSES[:5]:
        one, other = (model.estimate(where, method="particles") for model in (sampled, bare))
        assert one.rows == pytest.approx(other.rows)
        assert one.hits is None


def test_a_saved_model_answers_alike(sampled: Estimator, tmp_path: Path) -> None:
    loaded = Estimator.load(sampled.save(tmp_path / "model.countless"))
    for where in CLAUSES:
        one, other = sampled.estimate(where), loaded.estimate(where)
        assert (one.rows, one.low, one.high, one.hits) == pytest.approx((other.rows, other.low, other.high, other.hits))


def test_exact_counts_come_before_hits(sampled: Estimator) -> None:
    answer = sampled.estimate("small = 3")
    assert answer.exact
    assert answer.low == answer.high == answer.rows
