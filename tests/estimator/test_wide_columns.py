"""Columns with many values: pairs of values that occur together are counted, alone and beside other filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless.data.sources.source import Source, connect
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit

ROWS = 60_000
PARTS = 700


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts, each of one maker and in one to three colours, with numbers and paths of their own."""
    path = tmp_path_factory.mktemp("wide") / "table.parquet"
    connect().execute(f"""
        COPY (
            SELECT 'part-' || part AS part, 'maker-' || (part * 31 % 17) AS maker,
                ['red', 'green', 'blue'][1 + (part + i // {PARTS} % (1 + part % 3)) % 3] AS colour,
                hash(i) % 1000 AS number,
                '/' || repeat('x', (hash(i + 1) % 20)::INT) || '/' || i || '.html' AS path
            FROM (SELECT i, (i * 7919 % {PARTS})::INT AS part FROM range({ROWS}) AS t(i))
        ) TO '{path}' (FORMAT parquet)
    """)
    return path


@pytest.fixture(scope="module")
def estimator(table: Path) -> Estimator:
    return fit(table, text=["path"], evidence=600, text_counts="20kB", epochs=1, hidden=16, blocks=1)


@pytest.mark.parametrize(
    "where",
    [
        "part = 'part-7' AND maker = 'maker-13'",
        "part = 'part-7' AND maker <> 'maker-13'",
        "part = 'part-7' AND colour = 'red'",
        "part IN ('part-7', 'part-600', 'part-33') AND colour <> 'red'",
        "part < 'part-3' AND maker = 'maker-2'",
        "part = 'part-7' AND maker = 'maker-13' AND colour = 'blue'",
        "(maker = 'maker-13' OR colour = 'blue') AND part = 'part-8'",
        "part LIKE 'part-1%' AND NOT colour = 'green'",
    ],
)
def test_what_was_counted_is_exact(estimator: Estimator, table: Path, where: str) -> None:
    (truth,) = Source.open(table).counts([where])
    estimate = estimator.estimate(where)
    assert estimate.exact
    assert (estimate.rows, estimate.low, estimate.high) == (truth, truth, truth)
    assert estimator.info()["counts"]["sparse_pairs"] >= 2


@pytest.mark.parametrize("part", range(0, PARTS, 70))
def test_other_filters_are_asked_of_the_rows_that_were_counted(estimator: Estimator, table: Path, part: int) -> None:
    """About 85 rows of each part: hardly one of them is among the evidence rows."""
    for other, share in (("number < 500", 0.5), ("length(path) > 15", None), ("number % 2 = 0", 0.5)):
        where = f"part = 'part-{part}' AND maker = 'maker-{part * 31 % 17}' AND {other}"
        (truth,) = Source.open(table).counts([where])
        estimate = estimator.estimate(where)
        assert estimate.low / 1.5 <= truth <= 1.5 * estimate.high
        assert 0 < estimate.rows < 86
        if share is not None:
            assert truth / 3 < estimate.rows < truth * 3
