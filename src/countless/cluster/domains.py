"""The domain pass on a cluster: each task summarizes a part of the table, and the summaries are merged.

A piece sends the values of each column with their numbers of rows. The sum over all pieces is exact, and so are the
domains. Only if a piece has more values of a column than can be used, it sends a sample of this size, in which each
value stands for its neighbours. A grid, whose cells have about equally many rows, loses hardly any accuracy by that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from countless.cluster.rows import ParquetRows, reader
from countless.data.columns.discovery import IsSmall, Scans
from countless.data.columns.grids.grid_knots import grid_of
from countless.data.columns.names import exclude_option
from countless.data.columns.schema import Column
from countless.data.columns.strings.alphabet import POINTS, Tally, length_of
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import FLOATS, TEXT, is_signed, quote_identifier, stored_type, unsigned
from countless.data.sources.source import Source, connect, new_name
from countless.errors import DataError

PIECE_ROWS = 1_000_000
LEAST_HASHES = 4_096  # values with the least hashes: from the greatest of these the number of values follows within 2%
HASH_RANGE = 2.0**64

VALUES = "SELECT {column}, 'value', CAST(value AS VARCHAR), n FROM counted"
# Values in order, in buckets of equal mass: each is represented by its most frequent value, with the rows of all.
# The least and the greatest value have buckets of their own.
SAMPLED_VALUES = """
SELECT {column}, 'sampled', CAST(arg_max(value, n) AS VARCHAR), CAST(sum(n) AS BIGINT) FROM (
    SELECT value, n, CASE WHEN below = 0 THEN -1 WHEN below + n = mass THEN {most}
        ELSE floor(below::DOUBLE * {most} / mass) END AS bucket
    FROM (SELECT value, n, sum(n) OVER (ORDER BY value) - n AS below, sum(n) OVER () AS mass FROM counted
        WHERE value IS NOT NULL)
) GROUP BY bucket
UNION ALL SELECT {column}, 'sampled', NULL, n FROM counted WHERE value IS NULL
UNION ALL SELECT {column}, 'least', CAST(value AS VARCHAR), 0 FROM (
    SELECT value FROM counted WHERE value IS NOT NULL ORDER BY hash(value) LIMIT {least_hashes}
)
"""
SIGNED = f"SELECT {{column}}, 'signed', NULL, count(*) FROM typed WHERE {is_signed('c{column}')} HAVING count(*) > 0"
LENGTHS = """
SELECT {column}, 'length', CAST(length(value) AS VARCHAR), CAST(sum(n) AS BIGINT) FROM counted
WHERE value IS NOT NULL GROUP BY length(value)
"""
SUMMARIES = 'summaries (c INTEGER, what VARCHAR, "value" VARCHAR, n BIGINT)'


def pieces(rows: ParquetRows) -> int:
    """The number of pieces."""
    return -(-rows.total // PIECE_ROWS)


def summarize_piece(rows: ParquetRows, types: dict[str, str], most: int, index: int) -> Any:
    """The summary of a piece's columns, given their types by name: an Arrow table with the columns of SUMMARIES."""
    connection = connect()
    connection.register("piece", reader(_piece(rows, index), list(types)))
    cast = ", ".join(
        f"CAST({quote_identifier(name)} AS {kind}) AS c{column_index}"
        for column_index, (name, kind) in _numbered(types)
    )
    connection.execute(f"CREATE TEMP TABLE typed AS SELECT {cast} FROM piece")
    connection.execute(f"CREATE TEMP TABLE {SUMMARIES}")
    for column_index, (_, kind) in _numbered(types):
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE counted AS "
            f"SELECT c{column_index} AS value, count(*) AS n FROM typed GROUP BY 1"
        )
        ((distinct,),) = connection.execute("SELECT count(value) FROM counted").fetchall()
        more_sql = [LENGTHS] if kind == TEXT else [SIGNED] if kind in FLOATS else []
        for sql in (VALUES if distinct <= most else SAMPLED_VALUES, *more_sql):
            connection.execute(
                f"INSERT INTO summaries {sql.format(column=column_index, most=most, least_hashes=LEAST_HASHES)}"
            )
    return connection.sql("SELECT * FROM summaries").to_arrow_table()


def tally_piece(rows: ParquetRows, name: str, length: int, index: int) -> Any:
    """The characters of a piece's strings: code points with counts, then the counts of cut strings and their tails."""
    import pyarrow as pa

    source = Source.open(reader(_piece(rows, index), [name]))
    tally = Tally(length)
    for (strings,) in source.batches(f"SELECT CAST({quote_identifier(name)} AS VARCHAR) FROM {source.table}"):
        tally.add(strings)
    points = np.flatnonzero(tally.counts)
    return pa.table(
        {
            "point": np.append(points, [POINTS, POINTS + 1]),
            "n": np.append(tally.counts[points], [tally.cut, tally.beyond]),
        }
    )


class MergedScans(Scans):
    """Scans that merge the summaries of all pieces of ``rows``, which are the rows of ``source``.

    ``on_all`` calls a function for each piece. A piece sends at most about ``most`` values of a column.
    """

    def __init__(
        self,
        source: Source,
        rows: ParquetRows,
        on_all: Callable[[Callable[[int], Any], list[int]], Iterator[Any]],
        most: int,
    ) -> None:
        super().__init__(source)
        self._rows, self._on_all = rows, on_all
        kinds = ((name, stored_type(kind)) for name, kind in source.columns())
        self._types = {name: kind for name, kind in kinds if kind is not None}
        self._indices = {name: column_index for column_index, name in enumerate(self._types)}
        connection = connect()
        self._summaries = Source(new_name(), connection, None)
        self._summaries.run(f"CREATE TEMP TABLE {SUMMARIES}")
        for table in self._results(partial(summarize_piece, rows, self._types, most)):
            connection.register("summary", table)
            self._summaries.run("INSERT INTO summaries SELECT * FROM summary")
            connection.unregister("summary")
        self._sampled = {
            column_index
            for (column_index,) in self._summaries.rows("SELECT DISTINCT c FROM summaries WHERE what = 'sampled'")
        }

    def _results(self, function: Callable[[int], Any]) -> Iterator[Any]:
        """The results of a function for every piece, in any order."""
        return self._on_all(function, list(range(pieces(self._rows))))

    def signed(self) -> frozenset[str]:
        signed_indices = {
            column_index
            for (column_index,) in self._summaries.rows("SELECT DISTINCT c FROM summaries WHERE what = 'signed'")
        }
        return frozenset(name for name, column_index in self._indices.items() if column_index in signed_indices)

    def statistics(self, requested: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        ((rows,),) = self._summaries.rows(
            "SELECT coalesce(sum(n), 0) FROM summaries WHERE c = 0 AND what IN ('value', 'sampled')"
        )
        figures: list[tuple[int, float | None]] = []
        known = self._types.keys() & set(requested)
        for name, _ in self.source.columns():
            lengths = self._lengths(name) if name in known else {}
            strings = sum(lengths.values())
            mean = sum(length * count for length, count in lengths.items()) / strings if strings else None
            figures.append((self._distinct(name) if name in known else 0, mean))
        return int(rows), figures

    def domains(self, types: dict[str, str], is_small: IsSmall) -> dict[str, Column]:
        columns = {}
        for name, kind in types.items():
            if is_small(name, self._distinct(name)):
                values = self._values(name)
                texts = self._summaries.rows(
                    f"SELECT CAST(value AS VARCHAR) FROM {values} ORDER BY value ASC NULLS LAST"
                )
                column_values = tuple(unsigned(str(text), kind) for (text,) in texts if text is not None)
                columns[name] = Column(name, kind, column_values, has_null=len(column_values) < len(texts))
        return columns

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        column = grid_of(self._summaries, self._values(name), name, kind, most_cells)
        return _with_distinct(column, self._distinct(name)) if self._indices[name] in self._sampled else column

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        lengths = self._lengths(name)
        if not lengths:
            raise DataError(f'the text column "{name}" holds only NULLs: leave it out with {exclude_option(name)}')
        characters = Tally(length_of(lengths, length))
        for table in self._results(partial(tally_piece, self._rows, name, characters.length)):
            points, point_counts = table["point"].to_numpy(), table["n"].to_numpy()
            characters.counts[points[:-2]] += point_counts[:-2]
            characters.cut += int(point_counts[-2])
            characters.beyond += int(point_counts[-1])
        estimated = self._indices[name] in self._sampled
        return characters.column(name, kind, rows, sum(lengths.values()), self._distinct(name), estimated)

    def _lengths(self, name: str) -> dict[int, int]:
        """The number of strings of each length."""
        of_column = f"c = {self._indices[name]}"
        sql = f"SELECT CAST(value AS BIGINT), sum(n) FROM summaries WHERE {of_column} AND what = 'length' GROUP BY 1"
        return {int(length): int(count) for length, count in self._summaries.rows(sql)}

    def _distinct(self, name: str) -> int:
        """The number of values of the column without NULL; an estimate if a piece sent a sample."""
        column_index = self._indices[name]
        value = f"CAST(value AS {self._types[name]})"
        if column_index not in self._sampled:
            sql = f"SELECT count(DISTINCT {value}) FROM summaries WHERE c = {column_index} AND what = 'value'"
            return int(self._summaries.rows(sql)[0][0])
        # The hash only selects a sample of the values. Different values with equal hashes count separately.
        values = (
            f"SELECT DISTINCT {value} AS value FROM summaries WHERE c = {column_index} AND what IN ('value', 'least')"
        )
        hashes = f"SELECT hash(value) AS hash FROM ({values}) WHERE value IS NOT NULL ORDER BY 1 LIMIT {LEAST_HASHES}"
        ((count, greatest),) = self._summaries.rows(f"SELECT count(*), max(hash) FROM ({hashes})")
        return round((int(count) - 1) * HASH_RANGE / max(1, int(greatest)))

    def _values(self, name: str) -> str:
        """The name of a table with the column's values and the number of rows of each."""
        self._summaries.run(
            f"CREATE OR REPLACE TEMP TABLE merged AS SELECT CAST(value AS {self._types[name]}) AS value, "
            f"CAST(sum(n) AS BIGINT) AS n FROM summaries WHERE c = {self._indices[name]} "
            "AND what IN ('value', 'sampled') GROUP BY 1"
        )
        return "merged"


def _numbered(types: dict[str, str]) -> list[tuple[int, tuple[str, str]]]:
    return list(enumerate(types.items()))


def _piece(rows: ParquetRows, index: int) -> list[tuple[str, int, int]]:
    return rows.between(index * PIECE_ROWS, (index + 1) * PIECE_ROWS)


def _with_distinct(column: Column, distinct: int) -> Column:
    """The column with about ``distinct`` values in its grid, which was made from a sample of them."""
    grid = column.grid
    assert grid is not None
    scale = distinct / grid.values
    scaled = tuple(
        count if len(grid.knots(cell)) == 1 else max(len(grid.knots(cell)), round(count * scale))
        for cell, count in enumerate(grid.distinct)
    )
    return replace(column, grid=replace(grid, distinct=scaled))
