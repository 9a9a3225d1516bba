"""Rows that pass a filter, as bits: filters that are used again are counted together without reading any codes.

And pairs of rows with the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.engine.columns.kernel import compiled
from countless.region import Filter

MOST_FILTERS = 64  # as in the C source
WORD = 64  # bits


class RowSet:
    """The rows that pass one filter: how many they are, and their bits, once each is asked for."""

    __slots__ = ("bits", "count", "is_used", "seen")

    def __init__(self, seen: BoolArray | None) -> None:
        self.seen = seen
        self.is_used = False
        self.count: int | None = None
        self.bits: NDArray[np.uint64] | None = None


class RowSets:
    """Counts rows that pass several filters. A filter keeps its rows with it, so they are dropped together.

    ``marks`` tells which rows pass a filter. Most filters are used once: bits are made when one is used again.
    """

    def __init__(self, marks: Callable[[Filter], BoolArray]) -> None:
        self._marks = marks
        self._module = compiled()

    def count(self, filters: Sequence[Filter]) -> int | None:
        """How many rows pass all ``filters``; None if one of them was not used before."""
        row_sets = list(map(self.of, filters))
        is_ready = 0 < len(row_sets) <= MOST_FILTERS
        for row_set in row_sets:
            is_ready &= row_set.is_used
            row_set.is_used = True
        if not is_ready:
            return None
        sets = [
            self._bits(row_set, item) if row_set.bits is None else row_set.bits
            for row_set, item in zip(row_sets, filters, strict=True)
        ]
        return count_by_numpy(sets) if self._module is None else int(self._module.common_rows(sets))

    def of(self, item: Filter) -> RowSet:
        """The rows of one filter."""
        derived: dict[Any, Any] = item.constraint.derived
        row_set: RowSet | None = derived.get(self)
        if row_set is None or row_set.seen is not item.seen:
            row_set = derived[self] = RowSet(item.seen)
        return row_set

    def _bits(self, row_set: RowSet, item: Filter) -> NDArray[np.uint64]:
        row_set.bits = bits_of(self._marks(item))
        return row_set.bits


def bits_of(marks: BoolArray) -> NDArray[np.uint64]:
    """Marks of rows as bits, in whole words."""
    words: NDArray[np.uint64] = np.zeros(-(-len(marks) // WORD), dtype=np.uint64)
    packed = np.packbits(marks)
    words.view(np.uint8)[: len(packed)] = packed
    return words


def count_by_numpy(sets: Sequence[NDArray[np.uint64]]) -> int:
    """How many rows are in all sets, without the compiled module."""
    return int(np.count_nonzero(np.unpackbits(np.bitwise_and.reduce(sets).view(np.uint8))))


def pairs_of_rows(codes: NDArray[Any], size: int, order: IntArray) -> IntArray:
    """The first row in ``order`` of each of ``size`` codes that has two, and then the second rows of the same codes."""
    module = compiled()
    if module is None:
        first_two = first_two_by_numpy(codes, size, order)
    else:
        first_two = np.empty((2, size), dtype=np.int64)
        module.first_two(codes, order, first_two)
    pairs: IntArray = first_two[:, first_two[1] >= 0].ravel()
    return pairs


def first_two_by_numpy(codes: NDArray[Any], size: int, order: IntArray) -> IntArray:
    """The first row in ``order`` of each code, and the second, (2, size), without the compiled module; -1 if none."""
    first_two: IntArray = np.full((2, size), -1)
    remaining = order[::-1]
    for row_of_code in first_two:
        code_of_row = codes[remaining]
        row_of_code[code_of_row] = remaining  # of equal codes the last one stays: the first in order
        remaining = remaining[row_of_code[code_of_row] != remaining]
    return first_two
