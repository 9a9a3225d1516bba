"""A source shows every column in the type that a model stores it in, whatever kind of source it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from countless.data.sources.source import Source, connect
from countless.estimator.fitting.fit import fit
from countless.options import Network

ROWS = """
SELECT
    CAST(md5(CAST(range AS VARCHAR)) AS UUID) AS "the key",
    CAST(['low', 'high', 'none'][1 + range % 3] AS ENUM('none', 'low', 'high')) AS level,
    range % 7 AS day
FROM range(120)
"""
CLAUSES = (
    "\"the key\" LIKE 'a%'",
    "\"the key\" BETWEEN 'a' AND 'f'",
    "\"the key\" NOT LIKE '%00%'",
    'length("the key") = 36',
    "regexp_matches(\"the key\", '^[0-9]')",
    "\"the key\" IN ('no uuid')",
    "level < 'low'",
    "level LIKE '%o%'",
    "length(level) BETWEEN 4 AND 5",
)


def parquet(folder: Path) -> Any:
    connect().execute(f"COPY ({ROWS}) TO '{folder / 't.parquet'}'")
    return folder / "t.parquet"


def database(folder: Path) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS {ROWS}")
    return folder / "t.duckdb"


def relation(folder: Path) -> Any:
    return duckdb.sql(ROWS)


def frame(folder: Path) -> Any:
    rows = connect().execute(f'SELECT * REPLACE (CAST("the key" AS VARCHAR) AS "the key") FROM ({ROWS})').df()
    rows["level"] = pd.Categorical(rows["level"])  # DuckDB reads it as an enumeration
    return rows


@pytest.mark.parametrize("made", [parquet, database, relation, frame])
def test_every_question_is_about_the_stored_type(made: Any, tmp_path: Path) -> None:
    source = Source.open(made(tmp_path))
    assert [kind for _, kind in source.columns()] == ["VARCHAR", "VARCHAR", "BIGINT"]
    texts = [tuple(map(str, row)) for row in connect().execute(ROWS).fetchall()]
    plain = pd.DataFrame(texts, columns=["the key", "level", "day"])
    assert source.counts(CLAUSES) == Source.open(plain).counts(CLAUSES)


@pytest.mark.parametrize("text", [False, True])
def test_uuids_are_fitted_and_asked(text: bool, tmp_path: Path) -> None:
    how: dict[str, Any] = {"text": ["the key"]} if text else {"no_text": ["the key"]}
    model = fit(
        parquet(tmp_path), epochs=1, max_distinct=100, network=Network(hidden=16, blocks=1), **how, text_model=text
    )
    assert model.calibration.queries
    source = Source.open(tmp_path / "t.parquet")
    for clause, estimate in zip(CLAUSES, model.estimate_many(CLAUSES), strict=True):
        assert 0 <= estimate.low <= estimate.rows <= estimate.high <= 120, clause
    assert model.estimate(CLAUSES[6]).rows == source.counts([CLAUSES[6]])[0]
