"""Comparisons of two columns by NumPy: the rows that DuckDB finds, and only for columns where that is certain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlglot import parse_one

from countless.data.encoding.table import read_schema
from countless.data.evidence import EvidenceRows
from countless.data.sources.source import Source, connect
from countless.options import EncodeOptions
from countless.query.compile import Compiler
from countless.query.domains.column_pairs import ColumnPairs

TABLE = """
SELECT
    CASE WHEN hash(range) % 9 > 0 THEN (hash(range, 1) % 40)::INTEGER - 20 END AS small,
    (hash(range, 2) // 1000 % 37)::BIGINT - 20 AS large,
    CASE hash(range, 3) % 7 WHEN 0 THEN NULL WHEN 1 THEN 'inf'::DOUBLE ELSE (hash(range, 3) % 50) / 2 - 10 END AS real,
    CASE WHEN hash(range, 4) % 9 > 0 THEN DATE '2020-01-01' + (hash(range, 4) % 30)::INTEGER END AS day,
    TIMESTAMP '2020-01-01' + INTERVAL 1 HOUR * (hash(range, 5) % 720)::INTEGER AS moment,
    CASE WHEN hash(range, 6) % 5 = 0 THEN 'nan'::DOUBLE ELSE (hash(range, 6) % 30)::DOUBLE END AS odd,
    9007199254740993 + (hash(range, 7) % 2)::BIGINT AS huge,
    CASE WHEN hash(range, 8) % 5 = 0 THEN DATE 'infinity' ELSE DATE '2020-01-02' END AS forever,
    ((hash(range, 9) % 30) / 3)::DECIMAL(6, 2) AS price
FROM range(900)
"""
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
FAST = [("small", "large"), ("large", "small"), ("small", "real"), ("real", "real"), ("day", "moment")]
LEFT_TO_DUCKDB = [("odd", "small"), ("huge", "real"), ("forever", "day"), ("price", "small"), ("day", "small")]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> EvidenceRows:
    path: Path = tmp_path_factory.mktemp("pairs") / "table.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}'")
    source = Source.open(path)
    return EvidenceRows.drawn(source, read_schema(source, EncodeOptions()), 700, 3)


@pytest.mark.parametrize("pair", FAST)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_same_rows_as_duckdb(
    evidence: EvidenceRows, pair: tuple[str, str], operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicate = parse_one(f"{pair[0]} {operator} {pair[1]}", dialect="duckdb")
    marks = ColumnPairs(evidence).satisfied(predicate)
    assert marks is not None
    assert pair[0] == pair[1] or 0 < marks.sum() < len(marks)
    monkeypatch.setattr(ColumnPairs, "satisfied", lambda *_: None)
    tables = Compiler(evidence.schema, evidence).evidence
    assert tables is not None
    columns = sorted({evidence.schema.names.index(name) for name in pair})
    assert np.array_equal(marks, tables.satisfied(predicate, columns))


@pytest.mark.parametrize("pair", LEFT_TO_DUCKDB)
def test_what_numpy_compares_otherwise_is_left_to_duckdb(evidence: EvidenceRows, pair: tuple[str, str]) -> None:
    predicate = parse_one(f"{pair[0]} < {pair[1]}", dialect="duckdb")
    assert ColumnPairs(evidence).satisfied(predicate) is None


@pytest.mark.parametrize("clause", ["small + 1 < large", "NOT small < large", "small < 3", "small IS NULL"])
def test_other_predicates_are_left_to_duckdb(evidence: EvidenceRows, clause: str) -> None:
    assert ColumnPairs(evidence).satisfied(parse_one(clause, dialect="duckdb")) is None
