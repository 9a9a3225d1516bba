"""Samples under a condition on text: evidence rows first, then rows that the model writes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from countless import Network, TextNetwork, fit
from countless.estimator.estimator import Estimator

TABLE = """
SELECT ['doc', 'lib', NULL][1 + range % 3] AS section, (range * 7) % 11 AS size,
    if(range % 50 = 7, NULL, '/usr/' || md5(range::VARCHAR)[1:5] || if(range % 5 = 0, '.html', '.so')) AS path
FROM range(3000)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "paths.parquet"
    duckdb.connect().execute(f"COPY ({TABLE}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def plain(table: Path) -> Estimator:
    return fit(str(table), epochs=1, evidence=600, text=["path"], network=Network(hidden=16, blocks=1))


@pytest.fixture(scope="module")
def writing(table: Path) -> Estimator:
    """A model with a network of text, which can write strings."""
    text = TextNetwork(width=16, blocks=1, heads=2, inner=32)
    network = Network(hidden=16, blocks=1)
    return fit(str(table), epochs=1, evidence=600, text=["path"], network=network, text_network=text, max_length=24)


def in_table(table: Path, row: tuple[object, ...]) -> int:
    matches = "section IS NOT DISTINCT FROM ? AND size IS NOT DISTINCT FROM ? AND path IS NOT DISTINCT FROM ?"
    rows = duckdb.connect().execute(f"SELECT count(*) FROM '{table}' WHERE {matches}", list(row)).fetchall()
    return int(rows[0][0])


@pytest.mark.parametrize(
    "where",
    [
        "path LIKE '%.html'",
        "path LIKE '/usr/a%' OR path IS NULL",
        "path NOT LIKE '%.so' AND section = 'doc' AND size > 3",
    ],
)
def test_evidence_rows_satisfy_the_condition_and_are_the_tables(plain: Estimator, table: Path, where: str) -> None:
    hits = plain.estimate(where).hits
    assert hits is not None
    sample = plain.sample(12, where=where, seed=3)
    assert (len(sample), sample.stored, sample.requested) == (min(12, hits), min(12, hits), 12)
    assert sample.names == ("section", "size", "path")
    assert len(set(sample.rows)) == len(sample)
    assert all(in_table(table, row) for row in sample.rows)
    connection = duckdb.connect()
    connection.register("drawn", sample.to_arrow())
    assert connection.execute(f"SELECT count(*) FROM drawn WHERE {where}").fetchall() == [(len(sample),)]
    assert plain.sample(12, where=where, seed=3).rows == sample.rows
    assert plain.sample(12, where=where, seed=4).rows != sample.rows
    assert np.isfinite(sample.log_probs).all()


def test_no_more_rows_than_hits_without_a_network(plain: Estimator) -> None:
    where = "path LIKE '%.html' AND size = 3 AND section = 'doc'"
    hits = plain.estimate(where).hits
    sample = plain.sample(500, where=where)
    assert len(sample) == sample.stored == hits


def test_the_model_adds_what_is_missing(writing: Estimator) -> None:
    where = "path LIKE '/usr/a%'"
    hits = writing.estimate(where).hits
    assert hits
    sample = writing.sample(hits + 5, where=where, seed=1)
    assert sample.stored == hits
    assert len(sample) > hits
    assert all(row[2].startswith("/usr/a") for row in sample.rows)
    assert len(sample.log_probs) == len(sample.cut) == len(sample)


def test_no_stored_row_where_none_is_wanted(writing: Estimator) -> None:
    assert writing.sample(4, where="path LIKE '/usr/%'", stored=False).stored == 0
    assert writing.sample(4, where="size > 3").stored == 0  # no condition on text: the model writes


def test_text_alone_has_no_probabilities(table: Path) -> None:
    sample = fit(str(table), columns="path", evidence=600, epochs=1).sample(3, where="path LIKE '%.html'")
    assert (sample.stored, sample.names) == (3, ("path",))
    assert np.isnan(sample.log_probs).all()
