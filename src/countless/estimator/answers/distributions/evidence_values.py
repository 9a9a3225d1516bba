"""The values of evidence rows as a model sees them: codes, cells of a grid, bins and numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.calendar import CalendarPart
from countless.data.columns.schema import Column, Schema
from countless.data.evidence import EvidenceRows, Hits
from countless.engine.distributions.joint import MOST_LISTED
from countless.estimator.answers.distributions.bins import Bins
from countless.estimator.answers.distributions.values import Values
from countless.query.grids.scale import Key

A = TypeVar("A")


def part_codes(part: CalendarPart, hits: Hits) -> IntArray:
    """The code of each hit in a hidden column, computed from the timestamp."""
    codes = derived_once(
        hits.rows, ("part", part.of, part.part), lambda: part.codes(hits.rows.schema.coded[part.of].values)
    )
    return codes[hits.codes(part.of)]


class EvidenceValues:
    """The values of a condition's ``hits``; ``schema`` is that of the model's table."""

    def __init__(self, schema: Schema, hits: Hits) -> None:
        self.schema = schema
        self.hits = hits

    @property
    def whole(self) -> bool:
        """Whether the evidence is the whole table, so that counts of hits are exact."""
        return self.hits.rows.rows == self.schema.rows

    def column(self, index: int) -> Column:
        """The column at ``index`` of the evidence rows, which has every value, not a grid."""
        return self.hits.rows.schema.coded[index]

    def codes(self, index: int) -> IntArray:
        """The model's code of each hit in a column, which may be hidden; for a grid, the cell."""
        if (part := self.schema.calendar_part(index)) is not None:
            return part_codes(part, self.hits)
        codes = self.hits.codes(index)
        column = self.schema.coded[index]
        if column.grid is None:
            return codes
        return derived_once(self.hits.rows, ("cells", index), lambda: _cells(column, self.column(index)))[codes]

    def numbers(self, index: int) -> FloatArray:
        """The number of each hit in a column, NaN for NULL."""
        column = self.column(index)
        numbers = derived_once(self.hits.rows, ("numbers", index), lambda: Values(column).means)
        return numbers[self.hits.codes(index)]

    def bins(self, index: int, bins: Bins) -> IntArray:
        """The bin of each hit in a column, -1 if it is in none."""
        column, codes = self.column(index), self.hits.codes(index)
        keys: list[Key] = derived_once(self.hits.rows, ("keys", index), lambda: Values(column).keys)
        cuts = [*(bisect_left(keys, edge) for edge in bins.cuts[:-1]), bisect_right(keys, bins.cuts[-1])]
        bin_indexes = np.searchsorted(cuts, codes, side="right") - 1
        bin_indexes[codes >= cuts[-1]] = -1
        bin_indexes[codes == column.null] = len(cuts) - 1
        return bin_indexes


def tally(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The sorted combinations of codes, and how many rows have each; ``codes`` has one array per column."""
    combinations = np.ravel_multi_index(tuple(codes), tuple(sizes)) if codes else np.zeros(0, dtype=np.int64)
    if math.prod(sizes) <= MOST_LISTED:
        all_counts = np.bincount(combinations)
        present = np.flatnonzero(all_counts)
        counts = all_counts[present]
    else:
        present, counts = np.unique(combinations, return_counts=True)
    return np.stack(np.unravel_index(present, tuple(sizes)), axis=1).astype(np.int64), counts


def merged(
    codes: IntArray, rows: FloatArray, hit_codes: IntArray, counts: IntArray, sizes: Sequence[int]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The union of two lists of combinations, with the ``rows`` of the first and the ``counts`` of the second, or 0."""
    numbers = [np.ravel_multi_index(tuple(combinations.T), tuple(sizes)) for combinations in (codes, hit_codes)]
    if (size := math.prod(sizes)) <= MOST_LISTED:
        is_listed: BoolArray = np.zeros(size, dtype=np.bool_)
        for listed in numbers:
            is_listed[listed] = True
        union = np.flatnonzero(is_listed)
    else:
        union = np.union1d(*numbers)
    aligned = []
    for listed, amounts in zip(numbers, (rows, counts), strict=True):
        amount = np.zeros(len(union))
        amount[np.searchsorted(union, listed)] = amounts
        aligned.append(amount)
    return np.stack(np.unravel_index(union, tuple(sizes)), axis=1).astype(np.int64), aligned[0], aligned[1]


def _cells(column: Column, evidence: Column) -> IntArray:
    """For each code of the evidence's column, the cell of the table's grid that has its value."""
    assert column.grid is not None
    keys = Values(column).keys
    starts = [keys[start] for start in column.grid.starts]
    firsts = [max(0, bisect_right(starts, key) - 1) for key in Values(evidence).keys]
    return np.array([*firsts, column.null], dtype=np.int64)


def derived_once(rows: EvidenceRows, name: Hashable, make: Callable[[], A]) -> A:
    """What ``make`` returns, cached with the evidence rows; two threads may both make it."""
    if name not in rows.derived:
        rows.derived[name] = make()
    cached: A = rows.derived[name]
    return cached
