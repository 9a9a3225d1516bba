"""The filters of a box applied to exact counts: the rows that each filter keeps, and each pair of filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.summaries.pair_counts import Pairs
from countless.engine.columns.plan import folded
from countless.region import Constraint, Filter, flat_weights


class Sums:
    """The tables of pairs as running sums, so that the rows of many neighbouring buckets are read at once.

    Buckets are numbered through all members, each member's from ``first`` on. ``before[i, j]`` has the rows that are
    in bucket ``i`` and in any of the buckets before ``j``, where two members are a pair that is ``known``. With the
    compiled ``module``, filters are read there.
    """

    def __init__(self, pairs: Pairs, module: ModuleType | None = None) -> None:
        self.module = module
        members = len(pairs.members)
        self.first = np.cumsum([0, *map(len, pairs.starts)])
        self.widths = [  # codes of each member's buckets
            np.diff(own, append=len(pairs.counts[column]))
            for column, own in zip(pairs.members, pairs.starts, strict=True)
        ]
        self._touches: WeakKeyDictionary[Constraint, Touch] = WeakKeyDictionary()
        self.known: BoolArray = np.zeros((members, members), dtype=bool)
        kind = np.int32 if pairs.rows * max(1, members) < 2**31 else np.int64
        self.before: NDArray[Any] = np.zeros((self.first[-1], self.first[-1] + 1), dtype=kind)
        inside = self.before[:, 1:]
        for (one, two), table in pairs.tables.items():
            self.known[one, two] = self.known[two, one] = True
            inside[self._own(one), self._own(two)] = table
            inside[self._own(two), self._own(one)] = table.T
        np.cumsum(inside, axis=1, out=inside)
        alone = (-1, np.zeros(1, dtype=np.int64), 0)
        self.columns = [  # of each: its place among the members, the starts of its buckets and the number of the first
            alone if place is None else (place, pairs.starts[place], int(self.first[place]))
            for place in map(pairs.place.get, range(len(pairs.counts)))
        ]
        self.pairs_known: list[list[bool]] = self.known.tolist()

    def _own(self, place: int) -> slice:
        return slice(int(self.first[place]), int(self.first[place + 1]))

    def touch(self, pairs: Pairs, column: int, item: Filter) -> Touch:
        """The filter in its column's buckets, found once while the filter is kept."""
        found = self._touches.get(item.constraint)
        if found is None:
            found = self._touches[item.constraint] = Touch(pairs, self, column, item)
        return found

    def together(self, buckets: IntArray, chosen: Sequence[IntArray]) -> NDArray[Any]:
        """The rows in each of ``buckets`` and in any of those that are ``chosen`` together: (buckets, choices)."""
        runs = [_runs(each) for each in chosen]
        starts, ends = (np.concatenate(each) for each in zip(*runs, strict=True))
        found: NDArray[Any] = self.before[buckets[:, None], ends] - self.before[buckets[:, None], starts]
        if len(starts) > len(chosen):  # (buckets, runs)
            found = np.add.reduceat(found, np.cumsum([0, *(len(run[0]) for run in runs[:-1])]), axis=1)
        return found


def _runs(buckets: IntArray) -> tuple[IntArray, IntArray]:
    """Where runs of neighbours begin and end; one that is empty if there are none."""
    if len(buckets) == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    if buckets[-1] - buckets[0] == len(buckets) - 1:
        return buckets[:1], buckets[-1:] + 1
    gaps = np.flatnonzero(np.diff(buckets) > 1)
    return buckets[np.append(0, gaps + 1)], buckets[np.append(gaps, -1)] + 1


class Touch:
    """A filter in the buckets of its column: those that it touches and those it keeps ``whole``, and
    how many of their rows it ``may`` and ``must`` keep.

    A code of which it keeps a part, as of a grid's cell, may be kept and need not be.
    """

    def __init__(self, pairs: Pairs, sums: Sums, column: int, item: Filter) -> None:
        self.column = column
        self.place = pairs.place.get(column)
        weights, counts = item.constraint.weights, pairs.counts[column]
        may = must = counts * weights
        if weights.dtype != np.bool_:
            may, must = counts * (weights > 0), counts * (weights == 1)
        self.most, self.least = int(may.sum()), int(must.sum())
        if self.place is None:
            return
        starts = pairs.starts[self.place]
        if len(starts) < len(counts):
            may, must = np.add.reduceat(may, starts), np.add.reduceat(must, starts)
        self.widths: IntArray = sums.widths[self.place]
        self.inside = inside = np.flatnonzero(may)
        self.buckets: IntArray = inside + sums.first[self.place]
        self.may, self.must = may[inside], must[inside]
        self.rows = pairs.buckets[self.place][inside]
        self.whole: IntArray = self.buckets[self.must == self.rows]


@dataclass(frozen=True)
class Star:
    """Filters on a column with many values and on columns that were counted with it: how many rows satisfy them all.

    ``places`` are those of the filters, the one on the wide column first.
    """

    places: tuple[int, ...]
    rows: float
    least: int
    most: int


class Crossed:
    """The rows that each two filters keep together (filters, filters), at ``least`` and at ``most``.

    The diagonal is of the filters alone. Of two that are no pair that was counted, only these are known. ``stars`` are
    filters around a column with many values, more than two perhaps.
    """

    most: IntArray
    least: IntArray
    stars: Sequence[Star] = ()

    def __init__(self, pairs: Pairs, sums: Sums, filters: Sequence[tuple[int, Filter]]) -> None:
        self.rows = pairs.rows
        self.columns = [column for column, _ in filters]
        self._sums = sums
        self._own = [sums.columns[column] for column in self.columns]
        self._sizes = [len(pairs.counts[column]) for column in self.columns]
        # A row for each bucket of a filter's column, and a column for each filter: where the rows of each filter begin.
        self._from = [0]
        for place, starts, _ in self._own:
            self._from.append(self._from[-1] + (len(starts) * len(filters) if place >= 0 else 0))
        self._shares = np.empty(self._from[-1])
        if sums.module is None:
            self._by_numpy(pairs, filters)
        else:
            self._compiled(sums.module, pairs, filters)

    def _compiled(self, module: ModuleType, pairs: Pairs, filters: Sequence[tuple[int, Filter]]) -> None:
        """What :meth:`_by_numpy` finds."""
        count = len(filters)
        self.most, self.least = np.empty((count, count), dtype=np.int64), np.empty((count, count), dtype=np.int64)
        asked = [
            (place, flat_weights(item.constraint), pairs.counts[column], starts, first)
            for (column, item), (place, starts, first) in zip(filters, self._own, strict=True)
        ]
        known = self._sums.known
        module.cross(self._sums.before, known, len(known), self.rows, asked, self.most, self.least, self._shares)

    def _by_numpy(self, pairs: Pairs, filters: Sequence[tuple[int, Filter]]) -> None:
        touches = [self._sums.touch(pairs, column, item) for column, item in filters]
        most, least = (np.array(each) for each in zip(*((touch.most, touch.least) for touch in touches), strict=True))
        self.most = np.minimum.outer(most, most)
        self.least = np.maximum(np.add.outer(least, least) - self.rows, 0)
        inside = [index for index, touch in enumerate(touches) if touch.place is not None]
        if len(inside) > 1 and most.min() > 0:
            self._cross(self._sums, inside, [touches[index] for index in inside])
        np.fill_diagonal(self.most, most)
        np.fill_diagonal(self.least, least)

    def _cross(self, sums: Sums, inside: list[int], touches: Sequence[Touch]) -> None:
        """Of a bucket's rows that the other filter touches, no more are kept than the own filter may keep; and of
        those that the other filter keeps for sure, all are kept but for those that the own may drop."""
        buckets, may, drop = (
            np.concatenate(each) for each in zip(*((t.buckets, t.may, t.rows - t.must) for t in touches), strict=True)
        )
        cuts = np.cumsum([0, *(len(touch.buckets) for touch in touches[:-1])])
        touched = sums.together(buckets, [touch.buckets for touch in touches])
        most = np.add.reduceat(np.minimum(touched, may[:, None]), cuts, axis=0)
        surely = sums.together(buckets, [touch.whole for touch in touches])
        least = np.add.reduceat(np.maximum(surely - drop[:, None], 0), cuts, axis=0)
        places = np.array([touch.place for touch in touches])
        both, known = np.ix_(inside, inside), sums.known[places[:, None], places]
        self.most[both] = np.where(known, np.minimum(most, most.T), self.most[both])
        self.least[both] = np.where(known, np.maximum(least, least.T), self.least[both])
        for index, touch, rows in zip(inside, touches, np.split(touched, cuts[1:]), strict=True):
            shares = self._table(index)
            shares[:] = 0.0
            shares[touch.inside[:, None], inside] = rows / touch.rows[:, None]

    def _table(self, index: int) -> FloatArray:
        return self._shares[self._from[index] : self._from[index + 1]].reshape(-1, len(self._own))

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """For each code of the column of one filter, about how often its bucket's rows pass the ``later`` filters.

        That would be the product of what is known of each, if they had nothing to do with each other; they do, so it is
        the product's square root. None if nothing is known of any.
        """
        others = self._known_among(index, later)
        if not others or self.most.min() == 0:
            return None
        roots = np.sqrt(self._table(index)[:, others].prod(axis=1))
        return np.repeat(roots, self._sums.widths[self._own[index][0]])

    def along(self, asked: Sequence[tuple[int, Iterable[int], int]], least: float) -> list[FloatArray | None]:
        """The same of several filters, each with the later ones and how many symbols its first position has.

        Codes that begin with one symbol are one: the most that one of them has. No symbol has less than ``least``, and
        MASK, the last, has 1. With the compiled module, all are found at once.
        """
        module, calls = self._sums.module, []
        if module is None:
            return [folded(self.ahead(index, list(later)), symbols, least) for index, later, symbols in asked]
        hints: list[FloatArray | None] = []
        possible = self.most.min() > 0
        for index, later, symbols in asked:
            others = self._known_among(index, later) if possible else ()
            hint = np.empty(symbols + 1) if others else None
            hints.append(hint)
            if others:
                calls.append((self._from[index], others, self._own[index][1], self._sizes[index], hint))
        if calls:
            module.hints(self._shares, len(self._own), least, calls)
        return hints

    def _known_among(self, index: int, later: Iterable[int]) -> tuple[int, ...]:
        """Those of the ``later`` filters that are a pair with the one at ``index`` that was counted."""
        place = self._own[index][0]
        if place < 0:
            return ()
        known, own = self._sums.pairs_known[place], self._own
        return tuple([other for other in later if own[other][0] >= 0 and known[own[other][0]]])

    @property
    def least_of_all(self) -> int:
        """The rows that all filters keep, at least: those of some of them, but for those that the others may drop."""
        dropped = self.rows - self.least.diagonal()
        both = self.least - int(dropped.sum()) + (dropped + dropped[:, None])
        np.fill_diagonal(both, both.diagonal() - dropped)  # a filter with itself
        stars = [star.least - int(dropped.sum() - dropped[list(star.places)].sum()) for star in self.stars]
        return max(0, int(both.max()), *stars)
