"""The values of evidence rows in the terms of a model: codes, cells of a grid, bins and numbers."""

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
    """The code of each hit in a hidden column, which follows from the timestamp."""
    codes = derived_once(
        hits.rows, ("part", part.of, part.part), lambda: part.codes(hits.rows.schema.coded[part.of].values)
    )
    return codes[hits.codes(part.of)]


class EvidenceValues:
    """The values of a condition's ``hits``, beside the ``schema`` of the model's table."""

    def __init__(self, schema: Schema, hits: Hits) -> None:
        self.schema = schema
        self.hits = hits

    @property
    def whole(self) -> bool:
        """Whether the evidence is the whole table, so that all about it is counted."""
        return self.hits.rows.rows == self.schema.rows

    def column(self, index: int) -> Column:
        """The column at ``index`` as the evidence has it: with every value."""
        return self.hits.rows.schema.coded[index]

    def codes(self, index: int) -> IntArray:
        """The model's code of each hit in a column, which may be hidden; of a grid, the cell."""
        if (part := self.schema.calendar_part(index)) is not None:
            return part_codes(part, self.hits)
        own = self.hits.codes(index)
        column = self.schema.coded[index]
        if column.grid is None:
            return own
        return derived_once(self.hits.rows, ("cells", index), lambda: _cells(column, self.column(index)))[own]

    def numbers(self, index: int) -> FloatArray:
        """The number of each hit in a column, NaN for NULL."""
        column = self.column(index)
        found = derived_once(self.hits.rows, ("numbers", index), lambda: Values(column).means)
        return found[self.hits.codes(index)]

    def bins(self, index: int, bins: Bins) -> IntArray:
        """The bin of each hit in a column, -1 if it is in none."""
        column, codes = self.column(index), self.hits.codes(index)
        keys: list[Key] = derived_once(self.hits.rows, ("keys", index), lambda: Values(column).keys)
        cuts = [*(bisect_left(keys, edge) for edge in bins.cuts[:-1]), bisect_right(keys, bins.cuts[-1])]
        found = np.searchsorted(cuts, codes, side="right") - 1
        found[codes >= cuts[-1]] = -1
        found[codes == column.null] = len(cuts) - 1
        return found


def tally(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The combinations of codes of some rows, rising, and how many rows have each; codes are one array a column."""
    numbers = np.ravel_multi_index(tuple(codes), tuple(sizes)) if codes else np.zeros(0, dtype=np.int64)
    if math.prod(sizes) <= MOST_LISTED:
        every = np.bincount(numbers)
        found = np.flatnonzero(every)
        counts = every[found]
    else:
        found, counts = np.unique(numbers, return_counts=True)
    return np.stack(np.unravel_index(found, tuple(sizes)), axis=1).astype(np.int64), counts


def merged(
    codes: IntArray, rows: FloatArray, more: IntArray, counts: IntArray, sizes: Sequence[int]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Combinations that are in either of two lists, with the rows of the one and the counts of the other, or 0."""
    numbers = [np.ravel_multi_index(tuple(each.T), tuple(sizes)) for each in (codes, more)]
    if (size := math.prod(sizes)) <= MOST_LISTED:
        asked: BoolArray = np.zeros(size, dtype=np.bool_)
        for own in numbers:
            asked[own] = True
        every = np.flatnonzero(asked)
    else:
        every = np.union1d(*numbers)
    found = []
    for own, amounts in zip(numbers, (rows, counts), strict=True):
        amount = np.zeros(len(every))
        amount[np.searchsorted(every, own)] = amounts
        found.append(amount)
    return np.stack(np.unravel_index(every, tuple(sizes)), axis=1).astype(np.int64), found[0], found[1]


def _cells(column: Column, evidence: Column) -> IntArray:
    """For each code of the evidence's column the cell of the table's grid that it is in; both rise."""
    assert column.grid is not None
    keys = Values(column).keys
    starts = [keys[start] for start in column.grid.starts]
    firsts = [max(0, bisect_right(starts, key) - 1) for key in Values(evidence).keys]
    return np.array([*firsts, column.null], dtype=np.int64)


def derived_once(rows: EvidenceRows, name: Hashable, make: Callable[[], A]) -> A:
    """What ``make`` returns, once for the same evidence; two threads may both make it."""
    if name not in rows.derived:
        rows.derived[name] = make()
    found: A = rows.derived[name]
    return found
