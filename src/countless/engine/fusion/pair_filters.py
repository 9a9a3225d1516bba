"""The filters of a box applied to exact counts: the rows that each filter keeps, and each pair of filters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.cached_property import cached_property
from countless.data.summaries.pair_counts import Pairs
from countless.engine.fusion.wide_columns import Star
from countless.region import Constraint, Filter


class Sums:
    """The tables of pairs as running sums, so that the rows of many neighbouring buckets are read at once.

    Buckets are numbered through all members, each member's from ``first`` on. ``before[i, j]`` has the rows that are
    in bucket ``j`` and in any of the buckets before ``i``, where two members are a pair that is ``known``: those of
    neighbouring buckets ``j`` lie side by side, since a filter is asked about all of its own at once.
    """

    def __init__(self, pairs: Pairs) -> None:
        members = len(pairs.members)
        self.first = np.cumsum([0, *map(len, pairs.starts)])
        self.widths = [  # codes of each member's buckets
            np.diff(starts, append=len(pairs.counts[column]))
            for column, starts in zip(pairs.members, pairs.starts, strict=True)
        ]
        self._touches: WeakKeyDictionary[Constraint, Touch] = WeakKeyDictionary()
        self.known: BoolArray = np.zeros((members, members), dtype=bool)
        kind = np.int32 if pairs.rows * max(1, members) < 2**31 else np.int64
        self.before: NDArray[Any] = np.zeros((self.first[-1] + 1, self.first[-1]), dtype=kind)
        inside = self.before[1:]
        for (one, two), table in pairs.tables.items():
            self.known[one, two] = self.known[two, one] = True
            inside[self._buckets_of(one), self._buckets_of(two)] = table
            inside[self._buckets_of(two), self._buckets_of(one)] = table.T
        np.cumsum(inside, axis=0, out=inside)

    def compiled(self, module: ModuleType, pairs: Pairs) -> object:
        """The same in the compiled ``module``'s hands, with the counts of every column."""
        alone = np.zeros(1, dtype=np.int64)
        columns = [
            (-1, counts, alone, 0)
            if member is None
            else (member, counts, pairs.starts[member], int(self.first[member]))
            for counts, member in zip(pairs.counts, map(pairs.place.get, range(len(pairs.counts))), strict=True)
        ]
        sparse = [(table.column, table.other, table.starts, table.codes, table.rows) for table in pairs.sparse]
        return module.pairs(self.before, self.known, len(self.known), pairs.rows, columns, sparse)

    def _buckets_of(self, member: int) -> slice:
        return slice(int(self.first[member]), int(self.first[member + 1]))

    def touch(self, pairs: Pairs, column: int, item: Filter) -> Touch:
        """The filter in its column's buckets, found once while the filter is kept."""
        touch = self._touches.get(item.constraint)
        if touch is None:
            touch = self._touches[item.constraint] = Touch(pairs, self, column, item)
        return touch

    def together(self, buckets: IntArray, chosen: Sequence[IntArray]) -> NDArray[Any]:
        """The rows in each of ``buckets`` and in any of those that are ``chosen`` together: (buckets, choices)."""
        runs = list(map(_runs, chosen))
        starts, ends = map(np.concatenate, zip(*runs, strict=True))
        sums: NDArray[Any] = self.before[ends, buckets[:, None]] - self.before[starts, buckets[:, None]]
        if len(starts) > len(chosen):  # (buckets, runs)
            sums = np.add.reduceat(sums, np.cumsum([0, *(len(run[0]) for run in runs[:-1])]), axis=1)
        return sums


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
        self.member = pairs.place.get(column)
        weights, counts = item.constraint.weights, pairs.counts[column]
        may = must = counts * weights
        if weights.dtype != np.bool_:
            may, must = counts * (weights > 0), counts * (weights == 1)
        self.most, self.least = int(may.sum()), int(must.sum())
        if self.member is None:
            return
        starts = pairs.starts[self.member]
        if len(starts) < len(counts):
            may, must = np.add.reduceat(may, starts), np.add.reduceat(must, starts)
        self.widths: IntArray = sums.widths[self.member]
        self.inside = inside = np.flatnonzero(may)
        self.buckets: IntArray = inside + sums.first[self.member]
        self.may, self.must = may[inside], must[inside]
        self.rows = pairs.buckets[self.member][inside]
        self.whole: IntArray = self.buckets[self.must == self.rows]


class RowBounds(NamedTuple):
    """The rows that all filters of a box keep, at ``least`` and at ``most``: no more than the filters ``one`` and
    ``two`` keep together, which may be the same.

    ``counted`` are the filter and the two filters of which the fewest rows are known, and these rows, if there are any.
    """

    least: int
    most: int
    one: int
    two: int
    counted: list[tuple[int, int, int]]


class Crossed:
    """The rows that each two filters keep together (filters, filters), at ``least`` and at ``most``.

    The diagonal is of the filters alone. Of two that are no pair that was counted, only these are known.
    ``shares`` has a row for each bucket of each filter's column that is a member, and a column for each filter: how
    much of the bucket's rows that filter touches.
    """

    def __init__(
        self, pairs: Pairs, sums: Sums, columns: Sequence[int], most: IntArray, least: IntArray, shares: FloatArray
    ) -> None:
        self.rows, self.most, self.least = pairs.rows, most, least
        self._sums, self._shares = sums, shares
        self._members = [pairs.place.get(column) for column in columns]
        self._from = _starts_of(pairs, columns)

    @classmethod
    def by_numpy(cls, pairs: Pairs, sums: Sums, filters: Sequence[tuple[int, Filter]]) -> Crossed:
        """The filters on the columns at these indices."""
        columns = [column for column, _ in filters]
        touches = [sums.touch(pairs, column, item) for column, item in filters]
        most, least = map(np.array, zip(*((touch.most, touch.least) for touch in touches), strict=True))
        crossed = cls(
            pairs,
            sums,
            columns,
            np.minimum.outer(most, most),
            np.maximum(np.add.outer(least, least) - pairs.rows, 0),
            np.empty(_starts_of(pairs, columns)[-1]),
        )
        inside = [index for index, touch in enumerate(touches) if touch.member is not None]
        if len(inside) > 1 and most.min() > 0:
            crossed._cross(inside, [touches[index] for index in inside])
        np.fill_diagonal(crossed.most, most)
        np.fill_diagonal(crossed.least, least)
        return crossed

    def _cross(self, inside: list[int], touches: Sequence[Touch]) -> None:
        """Of a bucket's rows that the other filter touches, no more are kept than the own filter may keep; and of
        those that the other filter keeps for sure, all are kept but for those that the own may drop."""
        sums = self._sums
        buckets, may, drop = (
            np.concatenate(arrays)
            for arrays in zip(*((t.buckets, t.may, t.rows - t.must) for t in touches), strict=True)
        )
        cuts = np.cumsum([0, *(len(touch.buckets) for touch in touches[:-1])])
        touched = sums.together(buckets, [touch.buckets for touch in touches])
        most = np.add.reduceat(np.minimum(touched, may[:, None]), cuts, axis=0)
        surely = sums.together(buckets, [touch.whole for touch in touches])
        least = np.add.reduceat(np.maximum(surely - drop[:, None], 0), cuts, axis=0)
        tables = np.array([touch.member for touch in touches])
        both, known = np.ix_(inside, inside), sums.known[tables[:, None], tables]
        self.most[both] = np.where(known, np.minimum(most, most.T), self.most[both])
        self.least[both] = np.where(known, np.maximum(least, least.T), self.least[both])
        for index, touch, rows in zip(inside, touches, np.split(touched, cuts[1:]), strict=True):
            shares = self._table(index)
            shares[:] = 0.0
            shares[touch.inside[:, None], inside] = rows / touch.rows[:, None]

    def _table(self, index: int) -> FloatArray:
        return self._shares[self._from[index] : self._from[index + 1]].reshape(-1, len(self._members))

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """For each code of the column of one filter, about how often its bucket's rows pass the ``later`` filters.

        That would be the product of what is known of each, if they had nothing to do with each other; they do, so it is
        the product's square root. None if nothing is known of any.
        """
        member = self._members[index]
        others = [other for other in later if self._are_pair(member, self._members[other])]
        if member is None or not others or self.most.min() == 0:
            return None
        roots = np.sqrt(self._table(index)[:, others].prod(axis=1))
        return np.repeat(roots, self._sums.widths[member])

    def _are_pair(self, one: int | None, two: int | None) -> bool:
        """Whether the rows of two members were counted together."""
        return one is not None and two is not None and bool(self._sums.known[one, two])

    def bounds(self) -> RowBounds:
        """What all filters keep together."""
        # At least the rows of two of them, but for those that the others may drop.
        dropped = self.rows - self.least.diagonal()
        both = self.least - int(dropped.sum()) + (dropped + dropped[:, None])
        np.fill_diagonal(both, both.diagonal() - dropped)  # a filter with itself
        tightest = divmod(int(self.most.argmin()), len(self._members))
        return RowBounds(max(0, int(both.max())), int(self.most.min()), *tightest, self._rarest_counted())

    def _rarest_counted(self) -> list[tuple[int, int, int]]:
        known = self.least == self.most
        rarest = []
        for candidates in (known & np.eye(len(known), dtype=bool), np.triu(known, 1)):
            counted = np.argwhere(candidates)
            if len(counted):
                one, two = counted[self.most[candidates].argmin()].tolist()
                rarest.append((one, two, int(self.most[one, two])))
        return rarest


class CompiledCrossed:
    """The same from filters as the compiled ``module`` has read them; it makes no arrays until they are asked for.

    ``stars`` are what :class:`WideColumns` finds of the same filters.
    """

    def __init__(
        self, module: ModuleType, readings: tuple[object, ...], pairs: Pairs, sums: Sums, columns: Sequence[int]
    ) -> None:
        self._module, self._pairs, self._sums, self._columns = module, pairs, sums, columns
        self.compiled, *bounds, stars = module.cross(readings)
        self._bounds = RowBounds._make(bounds)
        self.stars = list(map(Star._make, stars))

    def bounds(self) -> RowBounds:
        """What all filters keep together."""
        return self._bounds

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """As :meth:`Crossed.ahead`."""
        return self.arrays.ahead(index, later)

    @cached_property
    def arrays(self) -> Crossed:
        """What was found, as arrays."""
        most, least, shares = self._module.crossed(self.compiled)
        high, low = (np.frombuffer(rows, dtype=np.int64).reshape(len(self._columns), -1) for rows in (most, least))
        return Crossed(self._pairs, self._sums, self._columns, high, low, np.frombuffer(shares))


def _starts_of(pairs: Pairs, columns: Sequence[int]) -> list[int]:
    """Where the rows of each filter's column begin among the shares, and where they end."""
    members = [pairs.place.get(column) for column in columns]
    return [0, *accumulate(0 if member is None else len(pairs.starts[member]) * len(columns) for member in members)]
