"""Sparse counts of pairs: the rows of every two values that occur together, of a column with many values and another.

A package is of one section, an airport is at few distances from the others. So of two columns few values occur
together, and all of these are counted in a few kilobytes, where a table of buckets (:mod:`.pair_counts`) would forget
which value it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.summaries.integer_packing import packed, unpacked

MOST_TABLES = 1_000
KINDS = {
    "pairs.sparse": np.int64,
    "pairs.sparse_cells": np.uint8,
    "pairs.sparse_codes": np.uint8,
    "pairs.sparse_rows": np.uint8,
}


@dataclass(frozen=True, eq=False)
class SparseTable:
    """The rows of every two codes of two columns that occur together, in the order of the codes of ``column``.

    The cells of its code ``a`` are those from ``starts[a]`` to ``starts[a + 1]``: each has a code of the ``other``
    column, ascending, and its ``rows``.
    """

    column: int
    other: int
    starts: IntArray
    codes: IntArray
    rows: IntArray

    @classmethod
    def of_cells(
        cls, column: int, other: int, size: int, ones: IntArray, twos: IntArray, rows: IntArray
    ) -> SparseTable:
        """From the two codes and the rows of each cell; cells with the same codes are added up.

        ``column`` has ``size`` codes.

        >>> table = SparseTable.of_cells(0, 1, 3, np.array([2, 0, 2]), np.array([5, 4, 5]), np.array([1, 2, 3]))
        >>> table.starts.tolist(), table.codes.tolist(), table.rows.tolist()
        ([0, 1, 1, 2], [4, 5], [2, 4])
        """
        width = int(twos.max(initial=0)) + 1
        keys, where = np.unique(ones * width + twos, return_inverse=True)
        sums = np.bincount(where, weights=rows, minlength=len(keys)).astype(np.int64)
        starts = np.searchsorted(keys, np.arange(size + 1) * width)
        return cls(column, other, starts, keys % width, sums)

    @property
    def ones(self) -> IntArray:
        """The code of ``column`` of each cell."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def firsts(self) -> NDArray[np.bool_]:
        """Which cells are the first of their code."""
        found = np.zeros(len(self.codes), dtype=np.bool_)
        found[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return found

    def numbers(self) -> tuple[IntArray, IntArray, IntArray]:
        """What is stored: the cells of each code, how far codes are apart, and how far rows are.

        The rows of a code's last cell follow from those of the code, and are not among them.
        """
        first = self.firsts
        apart = np.diff(self.codes, prepend=0)
        more = np.diff(self.rows, prepend=0)
        gaps = np.where(first, self.codes, apart)
        return np.diff(self.starts), gaps, np.where(first, self.rows, more)[~_lasts(first)]

    @property
    def bytes(self) -> int:
        """How many bytes it takes in a file, about."""
        return sum(packed(each).nbytes for each in self.numbers())


def sparse_arrays(tables: Sequence[SparseTable]) -> dict[str, NDArray[Any]]:
    """Compact arrays for the model file."""
    heads = [(table.column, table.other, len(table.codes)) for table in tables]
    parts = [table.numbers() for table in tables]
    joined = [np.concatenate([np.empty(0, dtype=np.int64), *(part[place] for part in parts)]) for place in range(3)]
    named = zip(("pairs.sparse_cells", "pairs.sparse_codes", "pairs.sparse_rows"), joined, strict=True)
    return {"pairs.sparse": np.array(heads, dtype=np.int64).ravel(), **{name: packed(each) for name, each in named}}


def read_sparse(arrays: Mapping[str, NDArray[Any]], counts: Sequence[IntArray]) -> tuple[SparseTable, ...]:
    """The tables that :func:`sparse_arrays` wrote, of columns whose codes have these ``counts`` of rows.

    Raises ValueError if they cannot be.
    """
    heads = arrays["pairs.sparse"].reshape(-1, 3).tolist()
    _require(len(heads) <= MOST_TABLES and len({(one, two) for one, two, _ in heads}) == len(heads))
    for one, two, cells in heads:
        _require(0 <= one < len(counts) and 0 <= two < len(counts) and one != two)
        _require(0 < cells <= len(counts[one]) * len(counts[two]))
    sizes = [len(counts[one]) for one, _, _ in heads]
    cells_of = _parts(arrays["pairs.sparse_cells"], sizes)
    for own, (one, two, cells) in zip(cells_of, heads, strict=True):
        _require(own.min() >= 0 and own.max() <= len(counts[two]) and own.sum() == cells)
        _require(bool(((own > 0) == (counts[one] > 0)).all()))
    gaps = _parts(arrays["pairs.sparse_codes"], [cells for _, _, cells in heads])
    stored = [cells - np.count_nonzero(own) for own, (_, _, cells) in zip(cells_of, heads, strict=True)]
    rows = _parts(arrays["pairs.sparse_rows"], stored)
    return tuple(
        _table(one, two, own, apart, stored_rows, counts)
        for (one, two, _), own, apart, stored_rows in zip(heads, cells_of, gaps, rows, strict=True)
    )


def _table(
    one: int, two: int, cells: IntArray, gaps: IntArray, rows: IntArray, counts: Sequence[IntArray]
) -> SparseTable:
    starts = np.concatenate([[0], np.cumsum(cells)])
    occupied = np.flatnonzero(cells)
    begins, ends = starts[occupied], starts[occupied + 1] - 1
    first = np.zeros(len(gaps), dtype=np.bool_)
    first[begins] = True
    _require(gaps.min() >= 0 and gaps.max() < len(counts[two]) and gaps[~first].min(initial=1) >= 1)
    codes = _summed(gaps, begins, cells[occupied])
    _require(codes.max() < len(counts[two]))
    all_rows = np.zeros(len(gaps), dtype=np.int64)
    all_rows[~_lasts(first)] = rows
    all_rows[ends] = 0
    all_rows = _summed(all_rows, begins, cells[occupied])
    all_rows[ends] = 0
    _require(all_rows.min() >= 0)
    all_rows[ends] = counts[one][occupied] - np.add.reduceat(all_rows, begins)
    _require(all_rows.min() > 0)
    _require(bool((np.bincount(codes, weights=all_rows, minlength=len(counts[two])) == counts[two]).all()))
    return SparseTable(one, two, starts, codes, all_rows)


def _summed(steps: IntArray, begins: IntArray, sizes: IntArray) -> IntArray:
    """Running sums, from each of ``begins`` on anew."""
    sums = np.cumsum(steps)
    found: IntArray = sums - np.repeat(sums[begins] - steps[begins], sizes)
    return found


def _lasts(first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cells are the last of their code, by which are the first."""
    return np.append(first[1:], True) if len(first) else first


def _parts(data: NDArray[Any], sizes: Sequence[int]) -> list[IntArray]:
    numbers = unpacked(data, sum(sizes))
    return np.split(numbers, np.cumsum(sizes)[:-1]) if sizes else []


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise ValueError
