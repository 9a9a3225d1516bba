"""What pieces of a table tell is, all together, what a scan of the table finds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from countless.cluster import domains
from countless.cluster.domains import MergedScans, pieces
from countless.cluster.rows import ParquetRows
from countless.data.encoding.table import find_schema, read_schema
from countless.data.sources.source import Source, connect
from countless.errors import DataError
from countless.options import EncodeOptions

TABLE = """
SELECT
    hash(range) % 7 AS a,
    CASE WHEN range % 9 > 0 THEN ['Oslo', 'Rome', 'Łódź'][1 + range % 3] END AS city,
    sqrt(hash(range, 5) % 1000000) AS measure,
    CASE WHEN range % 3 > 0 THEN (hash(range, 8) % 4000)::FLOAT / 8 ELSE 'inf'::FLOAT END AS odd,
    CASE WHEN range % 20 > 0 THEN 'https://example.org/' || hash(range, 7) % 5000 || repeat('é', range % 3) END AS url,
    NULL::INTEGER AS none,
    CASE WHEN range = 4321 THEN '-0.0'::DOUBLE ELSE range % 3 END AS zero,
    range % 2 = 0 AS even,
    TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (range % 11) HOUR AS moment,
    {'x': range} AS struct
FROM range(5000)
"""


def here(function: Any, indexes: list[int]) -> Iterator[Any]:
    """Passes in this process, the last piece first."""
    return map(function, reversed(indexes))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(domains, "PIECE_ROWS", 900)
    path = tmp_path / "rows.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}' (ROW_GROUP_SIZE 2048)")
    return str(path)


def merged(file: str, most: int) -> tuple[Source, MergedScans]:
    source = Source.open(file)
    rows = ParquetRows((file,), (source.count(),))
    assert pieces(rows) == 6
    return source, MergedScans(source, rows, here, most)


@pytest.mark.parametrize("options", [EncodeOptions(), EncodeOptions(max_distinct=500, exclude=("a",), text=("city",))])
def test_all_that_is_told_is_exact(file: str, options: EncodeOptions) -> None:
    source, finder = merged(file, 2_000)
    assert find_schema(finder, options, lambda stage, rows=None: None) == read_schema(source, options)


def test_some_values_make_a_grid_that_is_as_good(file: str) -> None:
    """Each piece tells 300 of its 900 values."""
    source, finder = merged(file, 300)
    options = EncodeOptions(max_distinct=100, text=("url",))
    merged_schema = find_schema(finder, options, lambda stage, rows=None: None)
    exact = read_schema(source, options)
    assert [column.name for column in merged_schema.columns] == [column.name for column in exact.columns]
    for name in ("measure", "odd"):
        column, true = (schema.coded[schema.find(name) or 0] for schema in (merged_schema, exact))
        assert column.grid is not None
        assert true.grid is not None
        assert column.has_null == true.has_null
        assert column.distinct == pytest.approx(true.distinct, rel=0.05)
        assert (column.values[0], column.values[-1]) == (true.values[0], true.values[-1])
        least = [column.values[start] for start in column.grid.starts if column.values[start] != "inf"]
        counts = source.counts([f"{name} >= {one} AND {name} < {two}" for one, two in pairwise(least)])
        usual = 5000 / column.grid.cells
        assert all(0.3 * usual < count < 2 * usual for count in counts)
    assert merged_schema.texts[0].distinct == pytest.approx(exact.texts[0].distinct, rel=0.05)
    assert merged_schema.texts[0].frequencies == exact.texts[0].frequencies


def test_values_with_the_same_hash_are_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of these strings many have a hash that another has too."""
    monkeypatch.setattr(domains, "PIECE_ROWS", 20_000)
    path = tmp_path / "orders.parquet"
    order = "'Order ' || range % 250 || ' of customer ' || range // 250"
    connect().execute(f"COPY (SELECT {order} AS item FROM range(60000)) TO '{path}'")
    source = Source.open(path)
    finder = MergedScans(source, ParquetRows((str(path),), (60_000,)), here, 5_000)
    ((distinct, _),) = finder.statistics(["item"])[1]
    assert distinct == pytest.approx(60_000, rel=0.06)


def test_text_of_nothing(file: str) -> None:
    _, finder = merged(file, 2_000)
    with pytest.raises(DataError, match="holds only NULLs"):
        finder.text("none", "VARCHAR", 5000, None)
