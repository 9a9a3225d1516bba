"""Counting of the pairs of values that occur together, where few do: :mod:`.sparse_pairs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.summaries.sparse_pairs import MOST_TABLES, SparseTable

LEAST_BYTES, ROWS_PER_BYTE = 20_000, 40  # sparse tables may take this many, and a byte more for each 40 rows
MOST_BYTES = 2_000_000
ROWS_PER_CELL = 8  # of a table, at least: with fewer its cells are chance
CELLS_PER_BYTE = 2  # that a sparse table may have for each byte that all may take: others are given up early
MOST_COUNTERS = 2**25  # of all candidates together, four bytes each, while rows are counted
CELLS_PER_ROW = 16  # up to which rows are counted by all cells, and from which on by those that they have
CODES_AT_ONCE = 2**22  # that are counted together: many, since each time all cells are added up
LOOK_EVERY = 4  # times after which candidates with too many cells are given up


def most_sparse_bytes(rows: int) -> int:
    """How many bytes sparse tables may take, by the rows of the table."""
    return min(LEAST_BYTES + rows // ROWS_PER_BYTE, MOST_BYTES)


class SparseCounter:
    """Counts every two codes of the pairs of columns that may be worth it, block by block.

    In such a pair one column has more codes than buckets. ``sizes`` and ``buckets`` are the numbers of codes and of
    buckets of each of the ``columns``.
    """

    def __init__(self, columns: Sequence[int], sizes: Sequence[int], buckets: Sequence[int], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: dict[int, list[IntArray]] = {}
        self._held_codes = self._times = 0
        self._cells: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._sizes = dict(zip(columns, sizes, strict=True))
        wide = {column for column, size, own in zip(columns, sizes, buckets, strict=True) if own < size}
        pairs = [
            (one, two) if self._sizes[one] >= self._sizes[two] else (two, one)
            for one, two in combinations(columns, 2)
            if most_bytes and wide & {one, two}
        ]
        room = MOST_COUNTERS
        for one, two in sorted(pairs, key=self._area)[:MOST_TABLES]:
            room -= self._area((one, two))
            if room < 0:
                break
            self._cells[one, two] = np.zeros(self._area((one, two)), dtype=np.int32)
            self._held |= {one: [], two: []}

    def _area(self, pair: tuple[int, int]) -> int:
        return self._sizes[pair[0]] * self._sizes[pair[1]]

    def add(self, codes: Sequence[IntArray]) -> None:
        """Count a block of rows: the codes of every column."""
        for column, held in self._held.items():
            held.append(codes[column])
            self._held_codes += len(codes[column])
        if self._held_codes >= CODES_AT_ONCE:
            self._count_held()
            self._times += 1
            if self._times % LOOK_EVERY == 0:
                self._give_up()

    def _count_held(self) -> None:
        if not self._held_codes:
            return
        columns = {column: np.concatenate(held) for column, held in self._held.items()}
        self._held, self._held_codes = {column: [] for column in columns}, 0
        for (one, two), cells in self._cells.items():
            keys = columns[one] * self._sizes[two] + columns[two]
            if len(cells) <= CELLS_PER_ROW * len(keys):
                cells += np.bincount(keys, minlength=len(cells)).astype(np.int32)
            else:
                some, rows = np.unique(keys, return_counts=True)
                cells[some] += rows

    def _give_up(self) -> None:
        most = CELLS_PER_BYTE * self._most_bytes
        self._cells = {pair: cells for pair, cells in self._cells.items() if np.count_nonzero(cells) <= most}
        self._held = {
            column: held for column, held in self._held.items() if any(column in pair for pair in self._cells)
        }

    def tables(self, known: Callable[[int, int], float]) -> tuple[SparseTable, ...]:
        """The tables that tell most for their size, as many as there is room for.

        ``known`` gives the bits a row that buckets already tell about two columns. A table must tell a bit more about
        all rows for each byte that it takes.
        """
        self._count_held()
        self._give_up()
        worth: list[tuple[float, int, SparseTable]] = []
        for (one, two), cells in self._cells.items():
            some = np.flatnonzero(cells)
            width = self._sizes[two]
            table = SparseTable.of_cells(
                one, two, self._sizes[one], some // width, some % width, cells[some].astype(np.int64)
            )
            rows = int(table.rows.sum())
            if len(table.codes) * ROWS_PER_CELL > rows:
                continue
            gain, size = mutual_information(table) - known(one, two), table.bytes
            if gain * rows > size:
                worth.append((gain / size, size, table))
        chosen, room = [], self._most_bytes
        for _, size, table in sorted(worth, key=lambda each: each[0], reverse=True):
            if size <= room:
                chosen.append(table)
                room -= size
        return tuple(chosen)


def mutual_information(table: SparseTable) -> float:
    """What one of the two columns tells about the other, in bits a row.

    >>> mutual_information(SparseTable.of_cells(0, 1, 2, np.array([0, 1]), np.array([0, 1]), np.array([2, 2])))
    1.0
    """
    rows = float(table.rows.sum())
    ones = np.bincount(table.ones, weights=table.rows)
    twos = np.bincount(table.codes, weights=table.rows)
    return float(table.rows @ np.log2(table.rows * rows / (ones[table.ones] * twos[table.codes])) / rows)
