"""Counting of the pairs of values that occur together, for pairs of columns where few do: :mod:`.sparse_pairs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.summaries.sparse_pairs import MOST_TABLES, SparseTable

LEAST_BYTES, ROWS_PER_BYTE = 20_000, 40  # sparse tables may take LEAST_BYTES, and a byte more per 40 rows,
MOST_BYTES = 2_000_000  # up to this limit
ROWS_PER_CELL = 8  # at least, on average: with fewer the cells of a table are chance
CELLS_PER_BYTE = 2  # at most, per byte of the limit: candidates with more cells are dropped early
MOST_COUNTERS = 2**25  # of all candidates together, of four bytes each
CELLS_PER_ROW = 16  # with more cells than that, only those that occur among the rows are added up
CODES_AT_ONCE = 2**22  # counted together: many, since each time all cells are added up
CHECK_EVERY = 4  # counts: then candidates with too many cells are dropped


def most_sparse_bytes(rows: int) -> int:
    """The limit on the bytes of sparse tables, for a table of this many rows."""
    return min(LEAST_BYTES + rows // ROWS_PER_BYTE, MOST_BYTES)


class SparseCounter:
    """Counts every two codes of candidate pairs of columns, block by block.

    In a candidate at least one column has more codes than buckets. ``sizes`` and ``buckets`` are the numbers of codes
    and of buckets of each of the ``columns``.
    """

    def __init__(self, columns: Sequence[int], sizes: Sequence[int], buckets: Sequence[int], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: dict[int, list[IntArray]] = {}  # by column: blocks of codes that are not counted yet
        self._waiting_codes = self._counts = 0
        self._cells: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._sizes = dict(zip(columns, sizes, strict=True))
        wide = {column for column, size, count in zip(columns, sizes, buckets, strict=True) if count < size}
        pairs = [
            (first, second) if self._sizes[first] >= self._sizes[second] else (second, first)
            for first, second in combinations(columns, 2)
            if most_bytes and wide & {first, second}
        ]
        room = MOST_COUNTERS
        for pair in sorted(pairs, key=self._area)[:MOST_TABLES]:
            room -= self._area(pair)
            if room < 0:
                break
            self._cells[pair] = np.zeros(self._area(pair), dtype=np.int32)
            self._waiting |= {column: [] for column in pair}

    def _area(self, pair: tuple[int, int]) -> int:
        """The number of cells of a pair."""
        return self._sizes[pair[0]] * self._sizes[pair[1]]

    def add(self, codes: Sequence[IntArray]) -> None:
        """Count a block of rows: the codes of every column."""
        for column, blocks in self._waiting.items():
            blocks.append(codes[column])
            self._waiting_codes += len(codes[column])
        if self._waiting_codes >= CODES_AT_ONCE:
            self._count_waiting()
            self._counts += 1
            if self._counts % CHECK_EVERY == 0:
                self._drop_dense()

    def _count_waiting(self) -> None:
        """Count the blocks that are not counted yet."""
        if not self._waiting_codes:
            return
        columns = {column: np.concatenate(blocks) for column, blocks in self._waiting.items()}
        self._waiting, self._waiting_codes = {column: [] for column in columns}, 0
        for (column, other), cells in self._cells.items():
            keys = columns[column] * self._sizes[other] + columns[other]
            if len(cells) <= CELLS_PER_ROW * len(keys):
                cells += np.bincount(keys, minlength=len(cells)).astype(np.int32)
            else:
                present, rows = np.unique(keys, return_counts=True)
                cells[present] += rows

    def _drop_dense(self) -> None:
        """Drop the candidates in which too many codes occur together."""
        most = CELLS_PER_BYTE * self._most_bytes
        self._cells = {pair: cells for pair, cells in self._cells.items() if np.count_nonzero(cells) <= most}
        self._waiting = {
            column: blocks for column, blocks in self._waiting.items() if any(column in pair for pair in self._cells)
        }

    def tables(self, bucket_information: Callable[[int, int], float]) -> tuple[SparseTable, ...]:
        """The tables with most information for their size, as many as there is room for.

        ``bucket_information`` returns the bits per row that the table of buckets has about two columns. A sparse table
        must have more than that: at least one bit, over all rows, for each byte of its size.
        """
        self._count_waiting()
        self._drop_dense()
        candidates: list[tuple[float, int, SparseTable]] = []
        for (column, other), cells in self._cells.items():
            present, width = np.flatnonzero(cells), self._sizes[other]
            cell_rows = cells[present].astype(np.int64)
            table = SparseTable.of_cells(
                column, other, self._sizes[column], present // width, present % width, cell_rows
            )
            rows = int(cell_rows.sum())
            if len(table.codes) * ROWS_PER_CELL > rows:
                continue
            gain, size = mutual_information(table) - bucket_information(column, other), table.bytes
            if gain * rows > size:
                candidates.append((gain / size, size, table))
        tables, room = [], self._most_bytes
        for _, size, table in sorted(candidates, key=lambda candidate: candidate[0], reverse=True):
            if size <= room:
                tables.append(table)
                room -= size
        return tuple(tables)


def mutual_information(table: SparseTable) -> float:
    """The mutual information of the two columns, in bits per row.

    >>> mutual_information(SparseTable.of_cells(0, 1, 2, np.array([0, 1]), np.array([0, 1]), np.array([2, 2])))
    1.0
    """
    total, codes, other_codes = float(table.rows.sum()), table.column_codes, table.codes
    rows = np.bincount(codes, weights=table.rows)
    other_rows = np.bincount(other_codes, weights=table.rows)
    return float(table.rows @ np.log2(table.rows * total / (rows[codes] * other_rows[other_codes])) / total)
