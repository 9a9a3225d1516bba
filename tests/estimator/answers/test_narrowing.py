"""Hits among the evidence rows of a counted part: every kind of filter beside a pattern is answered, and well."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from countless.data.sources.source import Source, connect
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit

ROWS = 6_000
PATTERNS = (
    "path LIKE '/shop/cart/%'",
    "path LIKE '%.html'",
    "path NOT LIKE '%page%'",
    "path LIKE '%1%' AND path LIKE '/%'",
)
FILTERS = (
    "hour(ts) < 5",
    "month(ts) = 3",
    "ts < '2024-02-01'",
    "price > 10.5",
    "status = 'open'",
    "status IN ('open', 'lost')",
    "status IS NULL",
    "hour(ts) < 5 AND status = 'open'",
    "(status = 'open' OR hour(ts) = 7)",
    "price > number",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "table.parquet"
    connect().execute(f"""
        COPY (
            SELECT if(i % 3 = 0, '/shop/cart/', '/page/') || i || if(i % 2 = 0, '.html', '.css') AS path,
                TIMESTAMP '2024-01-01' + INTERVAL (i * 37) MINUTE AS ts,
                (i * 7919 % 10007) / 97.0 AS price,
                i % 50 AS number,
                CASE i % 5 WHEN 0 THEN 'open' WHEN 1 THEN 'lost' WHEN 2 THEN NULL ELSE 'done' END AS status
            FROM range({ROWS}) AS t(i)
        ) TO '{path}' (FORMAT parquet)
    """)
    return path


@pytest.fixture(scope="module")
def estimator(table: Path) -> Estimator:
    return fit(table, text=["path"], evidence=800, text_counts="20kB", epochs=2, hidden=32, blocks=1, batch=256)


@pytest.mark.parametrize(("pattern", "others"), list(itertools.product(PATTERNS, FILTERS)))
def test_a_pattern_and_other_filters(estimator: Estimator, table: Path, pattern: str, others: str) -> None:
    where = f"{pattern} AND {others}"
    (truth,) = Source.open(table).counts([where])
    estimate = estimator.estimate(where)
    assert estimate.low <= estimate.rows <= estimate.high
    assert estimate.low <= 4 * max(truth, 1)
    assert estimate.high >= max(truth, 1) / 4
    assert estimator.explain(where).estimate.rows == pytest.approx(estimate.rows)


@pytest.mark.parametrize("number", range(0, 50, 10))
def test_a_filter_that_implies_the_others(estimator: Estimator, table: Path, number: int) -> None:
    """Of the evidence rows of the rarest filter all satisfy the rest: then nearly all of its counted rows do."""
    where = f"number = {number} AND status = 'open' AND price >= 0 AND ts > '2023-12-31'"
    (truth,) = Source.open(table).counts([where])
    estimate = estimator.estimate(where)
    assert estimate.hits
    assert estimate.low <= truth <= estimate.high
    assert estimate.high / estimate.low < 1.5  # by so many hits alone it would be 2
    assert truth / 1.2 < estimate.rows < truth * 1.2
