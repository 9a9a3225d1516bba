"""Sparse counts of pairs: the rows of every two values that occur together, of a column with many values and another.

A package belongs to one section, an airport has few distances to others: of such columns few values occur together. All
of these pairs are counted in a few kilobytes, whereas a table of buckets (:mod:`.pair_counts`) would mix the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.summaries.integer_packing import packed, require, unpacked_parts

MOST_TABLES = 1_000
KINDS = {
    "pairs.sparse": np.int64,
    "pairs.sparse_cells": np.uint8,
    "pairs.sparse_codes": np.uint8,
    "pairs.sparse_rows": np.uint8,
}


@dataclass(frozen=True, eq=False)
class SparseTable:
    """The number of rows of every two codes of two columns that occur together, in the order of ``column``'s codes.

    The cells of its code ``a`` are those from ``starts[a]`` up to ``starts[a + 1]``: each has a code of the ``other``
    column, in ``codes``, ascending, and the number of ``rows``.
    """

    column: int
    other: int
    starts: IntArray
    codes: IntArray
    rows: IntArray

    @classmethod
    def of_cells(
        cls, column: int, other: int, size: int, column_codes: IntArray, codes: IntArray, rows: IntArray
    ) -> SparseTable:
        """The table of these cells: their codes of ``column`` and of the ``other`` column, and their rows.

        Cells with the same codes are added up. ``column`` has ``size`` codes.

        >>> table = SparseTable.of_cells(0, 1, 3, np.array([2, 0, 2]), np.array([5, 4, 5]), np.array([1, 2, 3]))
        >>> table.starts.tolist(), table.codes.tolist(), table.rows.tolist()
        ([0, 1, 1, 2], [4, 5], [2, 4])
        """
        width = int(codes.max(initial=0)) + 1
        keys, cell_of = np.unique(column_codes * width + codes, return_inverse=True)
        sums = np.bincount(cell_of, weights=rows, minlength=len(keys)).astype(np.int64)
        starts = np.searchsorted(keys, np.arange(size + 1) * width)
        return cls(column, other, starts, keys % width, sums)

    @property
    def column_codes(self) -> IntArray:
        """Each cell's code of ``column``."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def firsts(self) -> NDArray[np.bool_]:
        """Whether each cell is the first with its code of ``column``."""
        is_first = np.zeros(len(self.codes), dtype=np.bool_)
        is_first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return is_first

    def numbers(self) -> tuple[IntArray, IntArray, IntArray]:
        """The stored numbers: the number of cells of each code, and the differences of codes and rows between cells.

        The rows of a code's last cell follow from those of the code, and are not stored.
        """
        is_first = self.firsts
        code_gaps = np.where(is_first, self.codes, np.diff(self.codes, prepend=0))
        row_gaps = np.where(is_first, self.rows, np.diff(self.rows, prepend=0))
        return np.diff(self.starts), code_gaps, row_gaps[~_lasts(is_first)]

    @property
    def bytes(self) -> int:
        """The approximate number of bytes in a file."""
        return sum(packed(numbers).nbytes for numbers in self.numbers())


def sparse_arrays(tables: Sequence[SparseTable]) -> dict[str, NDArray[Any]]:
    """Compact arrays for the model file."""
    heads = [(table.column, table.other, len(table.codes)) for table in tables]
    names = ("pairs.sparse_cells", "pairs.sparse_codes", "pairs.sparse_rows")
    numbers = [table.numbers() for table in tables]
    arrays = {
        name: packed(np.concatenate([np.empty(0, dtype=np.int64), *(parts[index] for parts in numbers)]))
        for index, name in enumerate(names)
    }
    return {"pairs.sparse": np.array(heads, dtype=np.int64).ravel(), **arrays}


def read_sparse(arrays: Mapping[str, NDArray[Any]], counts: Sequence[IntArray]) -> tuple[SparseTable, ...]:
    """The tables that :func:`sparse_arrays` wrote; ``counts`` has the number of rows of each code of each column.

    Raises:
        ValueError: the arrays are damaged, or do not fit ``counts``.
    """
    heads = arrays["pairs.sparse"].reshape(-1, 3).tolist()
    require(len(heads) <= MOST_TABLES and len({(column, other) for column, other, _ in heads}) == len(heads))
    for column, other, cells in heads:
        require(0 <= column < len(counts) and 0 <= other < len(counts) and column != other)
        require(0 < cells <= len(counts[column]) * len(counts[other]))
    cells_by_code = unpacked_parts(arrays["pairs.sparse_cells"], [len(counts[column]) for column, _, _ in heads])
    for code_cells, (column, other, cells) in zip(cells_by_code, heads, strict=True):
        require(code_cells.min() >= 0 and code_cells.max() <= len(counts[other]) and code_cells.sum() == cells)
        require(bool(((code_cells > 0) == (counts[column] > 0)).all()))
    code_gaps = unpacked_parts(arrays["pairs.sparse_codes"], [cells for _, _, cells in heads])
    stored = [cells - np.count_nonzero(own) for own, (_, _, cells) in zip(cells_by_code, heads, strict=True)]
    row_gaps = unpacked_parts(arrays["pairs.sparse_rows"], stored)
    return tuple(
        _table(column, other, code_cells, table_code_gaps, table_row_gaps, counts)
        for (column, other, _), code_cells, table_code_gaps, table_row_gaps in zip(
            heads, cells_by_code, code_gaps, row_gaps, strict=True
        )
    )


def _table(
    column: int, other: int, cells: IntArray, code_gaps: IntArray, row_gaps: IntArray, counts: Sequence[IntArray]
) -> SparseTable:
    """The table of the stored :meth:`SparseTable.numbers`; a ValueError if they do not fit ``counts``."""
    starts = np.concatenate([[0], np.cumsum(cells)])
    occupied = np.flatnonzero(cells)
    firsts, lasts = starts[occupied], starts[occupied + 1] - 1
    is_first = np.zeros(len(code_gaps), dtype=np.bool_)
    is_first[firsts] = True
    require(code_gaps.min() >= 0 and code_gaps.max() < len(counts[other]))
    require(code_gaps[~is_first].min(initial=1) >= 1)
    codes = _running_sums(code_gaps, firsts, cells[occupied])
    require(codes.max() < len(counts[other]))
    rows = np.zeros(len(code_gaps), dtype=np.int64)
    rows[~_lasts(is_first)] = row_gaps
    rows[lasts] = 0
    rows = _running_sums(rows, firsts, cells[occupied])
    rows[lasts] = 0
    require(rows.min() >= 0)
    rows[lasts] = counts[column][occupied] - np.add.reduceat(rows, firsts)
    require(rows.min() > 0)
    require(bool((np.bincount(codes, weights=rows, minlength=len(counts[other])) == counts[other]).all()))
    return SparseTable(column, other, starts, codes, rows)


def _running_sums(steps: IntArray, firsts: IntArray, sizes: IntArray) -> IntArray:
    """Running sums that start again at each of ``firsts``."""
    sums = np.cumsum(steps)
    restarted: IntArray = sums - np.repeat(sums[firsts] - steps[firsts], sizes)
    return restarted


def _lasts(is_first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each cell is the last of its code, given whether it is the first."""
    return np.append(is_first[1:], True) if len(is_first) else is_first
