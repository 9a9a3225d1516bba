"""Bounds and estimates from sparse counts of pairs: a filter on a column with many values, and others around it.

Of ``package = 'x' AND section = 'doc' AND suite = 'sid'`` the rows of each package with each section and each suite are
counted. They tell how many rows there are at least and at most: often both are the same, since a package is of one
section. Between them the filters are taken to have nothing to do with each other, given the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.summaries.pair_counts import Pairs
from countless.data.summaries.sparse_pairs import SparseTable
from countless.engine.fusion.pair_filters import Crossed, Star
from countless.region import Constraint, Filter

FEW_CODES = 64  # of a filter, whose cells are looked up; of more, all cells are summed once for each other filter
MOST_SUMS = 32  # that are kept, three numbers for each code


class WideColumns:
    """The sparse tables by their column with many values, as :class:`Counts` asks them."""

    def __init__(self, pairs: Pairs) -> None:
        self._counts = pairs.counts
        self._tables: dict[int, dict[int, SparseTable]] = {}
        for table in pairs.sparse:
            self._tables.setdefault(table.column, {})[table.other] = table
        self._sums: dict[tuple[Constraint, SparseTable], _Rows] = {}

    def refine(self, crossed: Crossed, filters: Sequence[tuple[int, Filter]]) -> list[Star]:
        """Tighten the bounds of pairs of filters, and give those of more filters at once."""
        stars = []
        for place, (column, item) in enumerate(filters):
            tables = self._tables.get(column)
            if tables is None:
                continue
            linked = [other for other, (own, _) in enumerate(filters) if own in tables]
            if linked:
                rays = [(other, tables[filters[other][0]], filters[other][1].constraint) for other in linked]
                stars.append(self._star(crossed, place, self._counts[column], item.constraint, rays))
        return stars

    def _star(
        self,
        crossed: Crossed,
        place: int,
        counts: IntArray,
        own: Constraint,
        rays: Sequence[tuple[int, SparseTable, Constraint]],
    ) -> Star:
        """The filter at ``place``, on a wide column whose codes have ``counts``, with the ``rays`` around it."""
        codes = np.flatnonzero(own.weights)
        weights = own.weights[codes]
        kept, all_rows = weights == 1, counts[codes]
        most, least, share = all_rows, np.where(kept, all_rows, 0), np.asarray(weights, dtype=np.float64)
        for other, table, constraint in rays:
            rows = self._rows(table, constraint, codes)
            pair_most, pair_least = int(rows.most.sum()), int(rows.least[kept].sum())
            for one, two in ((place, other), (other, place)):
                crossed.most[one, two] = min(crossed.most[one, two], pair_most)
                crossed.least[one, two] = max(crossed.least[one, two], pair_least)
            most = np.minimum(most, rows.most)
            least = least + rows.least - all_rows
            share = share * (rows.mean / np.maximum(all_rows, 1))
        least = np.maximum(least, 0)
        mean = np.clip(all_rows * share, least, most)
        return Star((place, *(other for other, _, _ in rays)), float(mean.sum()), int(least.sum()), int(most.sum()))

    def _rows(self, table: SparseTable, constraint: Constraint, codes: IntArray) -> _Rows:
        """How many rows of each of the wide column's ``codes`` satisfy a filter on the table's other column."""
        if len(codes) <= FEW_CODES:
            return _rows_of(table, constraint, codes)
        key = constraint, table
        found = self._sums.get(key)
        if found is None:
            found = _rows_of(table, constraint, np.arange(len(table.starts) - 1))
            if len(self._sums) >= MOST_SUMS:
                self._sums = {}
            self._sums[key] = found
        return _Rows(found.most[codes], found.least[codes], found.mean[codes])


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of each code of a wide column that a filter keeps: at most, at least, and about."""

    most: IntArray
    least: IntArray
    mean: FloatArray | IntArray


def _rows_of(table: SparseTable, constraint: Constraint, codes: IntArray) -> _Rows:
    starts, ends = table.starts[codes], table.starts[codes + 1]
    if len(codes) == 1:
        cells: slice | IntArray = slice(int(starts[0]), int(ends[0]))
    elif len(codes) == len(table.starts) - 1:
        cells = slice(None)
    else:
        sizes = ends - starts
        cells = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    weights, rows = constraint.weights[table.codes[cells]], table.rows[cells]
    begins = np.cumsum(ends - starts) - (ends - starts)
    if weights.dtype == np.bool_:
        kept = _sums(rows * weights, begins, ends > starts)
        return _Rows(kept, kept, kept)
    most, least, mean = (_sums(rows * part, begins, ends > starts) for part in (weights > 0, weights == 1, weights))
    return _Rows(most, least, mean)


def _sums(values: NDArray[Any], begins: IntArray, some: BoolArray) -> NDArray[Any]:
    """The sum of each code's cells, from where they begin; 0 of a code that has none."""
    found = np.zeros(len(begins), dtype=values.dtype)
    if some.any():
        found[some] = np.add.reduceat(values, begins[some])
    return found
