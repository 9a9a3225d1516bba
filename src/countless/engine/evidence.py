"""Counting of evidence: the sampled rows that have an allowed code in every column that is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.engine.columns.kernel import compiled
from countless.region import Box, Filter, Region

CodeSet = tuple[int, BoolArray]  # a column, and which of its codes are allowed
TRUTH = np.dtype(np.bool_)
FEW_ROWS = 200  # times so many are all: fewer rows are looked up one by one


class CodedRows:
    """Rows as one array of codes for each column; ``sizes`` has how many codes each column has.

    The first columns are those of a model, which have these ``positions``; then come its text columns.
    """

    def __init__(
        self, codes: Sequence[NDArray[Any]], sizes: Sequence[int], positions: Sequence[tuple[int, ...]]
    ) -> None:
        if any(int(column.max(initial=0)) >= size for column, size in zip(codes, sizes, strict=True)):
            raise ValueError("a row has a code that its column does not have")
        self._codes = tuple(np.ascontiguousarray(column) for column in codes)
        self._sizes = tuple(sizes)
        self.rows = len(codes[0])
        self._columns = {span: column for column, span in enumerate(positions)}
        self._module = compiled()
        self._frequencies: dict[int, NDArray[np.int32]] = {}

    def column_of(self, item: Filter) -> int | None:
        """The column that a filter is about; None if these rows do not have it."""
        return self._columns.get(item.positions)

    def count_region(self, region: Region, among: BoolArray | None = None) -> int:
        """How many rows are in ``region``, and ``among`` these, if some are marked."""
        if among is not None:
            return int(np.count_nonzero(self.mark_region(region, among)))
        return sum([self.count(self._sets(box)) for box in region.boxes])  # no row is in two boxes

    def mark_region(self, region: Region, among: BoolArray | None = None) -> BoolArray:
        """Which rows these are."""
        marks: BoolArray = np.zeros(self.rows, dtype=np.bool_)
        for box in region.boxes:
            marks |= self.marks(self._sets(box))
        return marks if among is None else marks & among

    def mark_some(self, box: Box, rows: IntArray) -> BoolArray:
        """Which of some ``rows`` are in ``box``."""
        if len(rows) * FEW_ROWS > self.rows:
            marks: BoolArray = self.marks(self._sets(box))[rows]
            return marks
        marks = np.ones(len(rows), dtype=np.bool_)
        for column, allowed in self._sets(box):
            marks &= allowed[self._codes[column][rows]]
        return marks

    def count(self, sets: Sequence[CodeSet]) -> int:
        """How many rows are in every one of ``sets``."""
        if len(sets) == 1:
            return self._count_codes(*sets[0])
        if self._module is None:
            return int(np.count_nonzero(self.marks(sets)))
        count: int = self._module.evidence(self._arrays(sets), self.rows, None)
        return count

    def _count_codes(self, column: int, allowed: BoolArray) -> int:
        """How many rows have an allowed code of one column."""
        frequencies = self._frequencies.get(column)
        if frequencies is None:
            counts = np.bincount(self._codes[column], minlength=self._sizes[column]).astype(np.int32)
            frequencies = self._frequencies[column] = counts
        if len(allowed) != len(frequencies):
            raise self._unlike(column, allowed)
        if self._module is None:
            return int(frequencies[allowed].sum())
        count: int = self._module.marked_sum(frequencies, allowed)
        return count

    def marks(self, sets: Sequence[CodeSet]) -> BoolArray:
        """Which rows are in every one of ``sets``."""
        if self._module is None:
            return self.marks_by_numpy(sets)
        marks: BoolArray = np.empty(self.rows, dtype=np.bool_)
        self._module.evidence(self._arrays(sets), self.rows, marks)
        return marks

    def marks_by_numpy(self, sets: Sequence[CodeSet]) -> BoolArray:
        """The same, without the compiled module."""
        marks: BoolArray = np.ones(self.rows, dtype=np.bool_)
        for column, allowed in sets:
            marks &= allowed[self._codes[column]]
        return marks

    def _sets(self, box: Box) -> list[CodeSet]:
        """What a box asks of each column. A filter on values that the model does not tell apart brings its own set."""
        sets: list[CodeSet] = []
        for item in box.filters:
            allowed = item.constraint.weights if item.seen is None else item.seen
            sets.append((self._columns[item.positions], allowed if allowed.dtype == TRUTH else allowed.astype(TRUTH)))
        for text in box.texts:
            assert text.seen is not None
            sets.append((len(self._columns) + text.column, text.seen))
        return sets

    def _arrays(self, sets: Sequence[CodeSet]) -> list[tuple[NDArray[Any], BoolArray]]:
        """What the compiled module reads. It trusts that every code is one of its set."""
        arrays = []
        for column, allowed in sets:
            if len(allowed) != self._sizes[column]:
                raise self._unlike(column, allowed)
            arrays.append((self._codes[column], allowed))
        return arrays

    def _unlike(self, column: int, allowed: BoolArray) -> ValueError:
        return ValueError(f"column {column} has {self._sizes[column]} codes, not {len(allowed)}")
