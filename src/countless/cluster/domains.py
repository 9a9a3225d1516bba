"""The domain pass on a cluster: each task summarizes a part of the table, and the summaries are merged.

A piece sends the values of each column with the rows of each. The sum over all pieces is exact, and so is all that
follows from it. Only if a piece has more values of a column than could be used, it sends that many of them
instead, which stand for their neighbours: a grid, whose cells hold about as many rows each, loses hardly anything.
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
LEAST = 4_096  # values with the least hashes: the share of all hashes below them tells how many there are, within 2%
HASH_RANGE = 2.0**64

VALUES = "SELECT {column}, 'value', CAST(value AS VARCHAR), n FROM counted"
# In the order of the values: each bucket of equal mass has its most frequent value, with the rows of all its values.
# The least and the greatest value have buckets of their own.
SOME_VALUES = """
SELECT {column}, 'some', CAST(arg_max(value, n) AS VARCHAR), CAST(sum(n) AS BIGINT) FROM (
    SELECT value, n, CASE WHEN below = 0 THEN -1 WHEN below + n = mass THEN {most}
        ELSE floor(below::DOUBLE * {most} / mass) END AS bucket
    FROM (SELECT value, n, sum(n) OVER (ORDER BY value) - n AS below, sum(n) OVER () AS mass FROM counted
        WHERE value IS NOT NULL)
) GROUP BY bucket
UNION ALL SELECT {column}, 'some', NULL, n FROM counted WHERE value IS NULL
UNION ALL SELECT {column}, 'least', CAST(value AS VARCHAR), 0 FROM (
    SELECT value FROM counted WHERE value IS NOT NULL ORDER BY hash(value) LIMIT {least}
)
"""
SIGNED = f"SELECT {{column}}, 'signed', NULL, count(*) FROM typed WHERE {is_signed('c{column}')} HAVING count(*) > 0"
LENGTHS = """
SELECT {column}, 'length', CAST(length(value) AS VARCHAR), CAST(sum(n) AS BIGINT) FROM counted
WHERE value IS NOT NULL GROUP BY length(value)
"""
TOLD = 'told (c INTEGER, what VARCHAR, "value" VARCHAR, n BIGINT)'


def pieces(rows: ParquetRows) -> int:
    """How many pieces there are."""
    return -(-rows.total // PIECE_ROWS)


def summarize(rows: ParquetRows, types: dict[str, str], most: int, index: int) -> Any:
    """What a piece sends about its columns, given their types by name: an Arrow table of the columns of TOLD."""
    connection = connect()
    connection.register("piece", reader(_piece(rows, index), list(types)))
    cast = ", ".join(f"CAST({quote_identifier(name)} AS {kind}) AS c{at}" for at, (name, kind) in _numbered(types))
    connection.execute(f"CREATE TEMP TABLE typed AS SELECT {cast} FROM piece")
    connection.execute(f"CREATE TEMP TABLE {TOLD}")
    for at, (_, kind) in _numbered(types):
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE counted AS SELECT c{at} AS value, count(*) AS n FROM typed GROUP BY 1"
        )
        ((distinct,),) = connection.execute("SELECT count(value) FROM counted").fetchall()
        more = [LENGTHS] if kind == TEXT else [SIGNED] if kind in FLOATS else []
        for sql in (VALUES if distinct <= most else SOME_VALUES, *more):
            connection.execute(f"INSERT INTO told {sql.format(column=at, most=most, least=LEAST)}")
    return connection.sql("SELECT * FROM told").to_arrow_table()


def tally(rows: ParquetRows, name: str, length: int, index: int) -> Any:
    """The characters of a piece's strings: code points and their counts, then how many are cut, and what is beyond."""
    import pyarrow as pa

    source = Source.open(reader(_piece(rows, index), [name]))
    found = Tally(length)
    for (strings,) in source.batches(f"SELECT CAST({quote_identifier(name)} AS VARCHAR) FROM {source.table}"):
        found.add(strings)
    points = np.flatnonzero(found.counts)
    return pa.table(
        {
            "point": np.append(points, [POINTS, POINTS + 1]),
            "n": np.append(found.counts[points], [found.cut, found.beyond]),
        }
    )


class Merged(Scans):
    """Knows what all pieces of the ``rows`` of ``source`` have told; ``on_all`` calls a function for each of them.

    A piece sends at most about ``most`` values of a column.
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
        self._numbers = {name: at for at, name in enumerate(self._types)}
        connection = connect()
        self._told = Source(new_name(), connection, None)
        self._told.run(f"CREATE TEMP TABLE {TOLD}")
        for table in self._passed(partial(summarize, rows, self._types, most)):
            connection.register("news", table)
            self._told.run("INSERT INTO told SELECT * FROM news")
            connection.unregister("news")
        self._some = {at for (at,) in self._told.rows("SELECT DISTINCT c FROM told WHERE what = 'some'")}

    def _passed(self, function: Callable[[int], Any]) -> Iterator[Any]:
        """What a function returns for every piece, in any order."""
        return self._on_all(function, list(range(pieces(self._rows))))

    def signed(self) -> frozenset[str]:
        signed = {at for (at,) in self._told.rows("SELECT DISTINCT c FROM told WHERE what = 'signed'")}
        return frozenset(name for name, at in self._numbers.items() if at in signed)

    def statistics(self, requested: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        ((rows,),) = self._told.rows("SELECT coalesce(sum(n), 0) FROM told WHERE c = 0 AND what IN ('value', 'some')")
        found: list[tuple[int, float | None]] = []
        known = self._types.keys() & set(requested)
        for name, _ in self.source.columns():
            lengths = self._lengths(name) if name in known else {}
            strings = sum(lengths.values())
            mean = sum(length * count for length, count in lengths.items()) / strings if strings else None
            found.append((self._distinct(name) if name in known else 0, mean))
        return int(rows), found

    def domains(self, types: dict[str, str], is_small: IsSmall) -> dict[str, Column]:
        found = {}
        for name, kind in types.items():
            if is_small(name, self._distinct(name)):
                values = self._values(name)
                texts = self._told.rows(f"SELECT CAST(value AS VARCHAR) FROM {values} ORDER BY value ASC NULLS LAST")
                known = tuple(unsigned(str(text), kind) for (text,) in texts if text is not None)
                found[name] = Column(name, kind, known, has_null=len(known) < len(texts))
        return found

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        column = grid_of(self._told, self._values(name), name, kind, most_cells)
        return _with_distinct(column, self._distinct(name)) if self._numbers[name] in self._some else column

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        lengths = self._lengths(name)
        if not lengths:
            raise DataError(f'the text column "{name}" holds only NULLs: leave it out with {exclude_option(name)}')
        found = Tally(length_of(lengths, length))
        for table in self._passed(partial(tally, self._rows, name, found.length)):
            points, counts = table["point"].to_numpy(), table["n"].to_numpy()
            found.counts[points[:-2]] += counts[:-2]
            found.cut, found.beyond = found.cut + int(counts[-2]), found.beyond + int(counts[-1])
        estimated = self._numbers[name] in self._some
        return found.column(name, kind, rows, sum(lengths.values()), self._distinct(name), estimated)

    def _lengths(self, name: str) -> dict[int, int]:
        """How many strings there are of each length."""
        at = self._numbers[name]
        sql = f"SELECT CAST(value AS BIGINT), sum(n) FROM told WHERE c = {at} AND what = 'length' GROUP BY 1"
        return {int(length): int(count) for length, count in self._told.rows(sql)}

    def _distinct(self, name: str) -> int:
        """How many values the column has, NULL not counted: an estimate if not all were told."""
        at = self._numbers[name]
        value = f"CAST(value AS {self._types[name]})"
        if at not in self._some:
            sql = f"SELECT count(DISTINCT {value}) FROM told WHERE c = {at} AND what = 'value'"
            return int(self._told.rows(sql)[0][0])
        # The hash only draws a sample of the values, and values with the same one still count as several.
        known = f"SELECT DISTINCT {value} AS value FROM told WHERE c = {at} AND what IN ('value', 'least')"
        hashes = f"SELECT hash(value) AS hash FROM ({known}) WHERE value IS NOT NULL ORDER BY 1 LIMIT {LEAST}"
        ((count, greatest),) = self._told.rows(f"SELECT count(*), max(hash) FROM ({hashes})")
        return round((int(count) - 1) * HASH_RANGE / max(1, int(greatest)))

    def _values(self, name: str) -> str:
        """A table of the column's values and how many rows have each."""
        self._told.run(
            f"CREATE OR REPLACE TEMP TABLE merged AS SELECT CAST(value AS {self._types[name]}) AS value, "
            f"CAST(sum(n) AS BIGINT) AS n FROM told WHERE c = {self._numbers[name]} AND what IN ('value', 'some') "
            "GROUP BY 1"
        )
        return "merged"


def _numbered(types: dict[str, str]) -> list[tuple[int, tuple[str, str]]]:
    return list(enumerate(types.items()))


def _piece(rows: ParquetRows, index: int) -> list[tuple[str, int, int]]:
    return rows.between(index * PIECE_ROWS, (index + 1) * PIECE_ROWS)


def _with_distinct(column: Column, distinct: int) -> Column:
    """The column with about this many values in its grid, of which only some were counted."""
    grid = column.grid
    assert grid is not None
    scale = distinct / grid.values
    scaled = tuple(
        count if len(grid.knots(cell)) == 1 else max(len(grid.knots(cell)), round(count * scale))
        for cell, count in enumerate(grid.distinct)
    )
    return replace(column, grid=replace(grid, distinct=scaled))
