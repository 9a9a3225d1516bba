"""Bounds and estimates from sparse counts of pairs: a filter on a column with many values, and others around it.

Of ``package = 'x' AND section = 'doc' AND suite = 'sid'`` the rows of each package with each section and each suite are
counted. They tell how many rows there are at least and at most: often both are the same, since a package is of one
section. Between them the filters are taken to have nothing to do with each other, given the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.summaries.pair_counts import Pairs
from countless.data.summaries.sparse_pairs import SparseTable
from countless.region import Constraint, Filter

FEW_CODES = 64  # of a filter, whose cells are looked up; of more, all cells are summed once for each other filter
MOST_SUMS = 32  # that are kept, three numbers for each code


class Star(NamedTuple):
    """A filter on a column with many values and some on columns that were counted with it: the rows that satisfy all.

    ``filters`` are their indices, that of the one on the wide column first. There are about ``rows``, between bounds.
    """

    filters: tuple[int, ...]
    rows: float
    least: int
    most: int


class WideColumns:
    """The sparse tables by their column with many values."""

    def __init__(self, pairs: Pairs) -> None:
        self._counts = pairs.counts
        self._tables: dict[int, dict[int, SparseTable]] = {}
        for table in pairs.sparse:
            self._tables.setdefault(table.column, {})[table.other] = table
        self._sums: dict[tuple[Constraint, SparseTable], _Rows] = {}

    def stars(self, filters: Sequence[tuple[int, Filter]]) -> list[Star]:
        """What is known of filters on these columns: of each two that were counted, and of all around one column."""
        stars: list[Star] = []
        for index, (column, item) in enumerate(filters):
            tables = self._tables.get(column)
            if tables is None:
                continue
            rays = [
                (other, tables[other_column], other_item.constraint)
                for other, (other_column, other_item) in enumerate(filters)
                if other_column in tables
            ]
            if rays:
                stars += self._stars(index, self._counts[column], item.constraint, rays)
        return stars

    def _stars(
        self, index: int, counts: IntArray, centre: Constraint, rays: Sequence[tuple[int, SparseTable, Constraint]]
    ) -> list[Star]:
        """The filter at ``index``, on a wide column whose codes have ``counts``, with each of the ``rays``, and all."""
        codes = np.flatnonzero(centre.weights)
        weights, all_rows = centre.weights[codes], counts[codes]
        sure = slice(None) if weights.dtype == np.bool_ else weights == 1
        of_rays = [self._rows(table, constraint, codes) for _, table, constraint in rays]
        stars = [
            Star((index, other), float((weights * rows.mean).sum()), int(rows.least[sure].sum()), int(rows.most.sum()))
            for (other, _, _), rows in zip(rays, of_rays, strict=True)
        ]
        if len(rays) > 1:
            most = reduce(np.minimum, [rows.most for rows in of_rays])
            least = np.maximum(sum(rows.least for rows in of_rays) - (len(rays) - 1) * all_rows, 0)
            bounds = int(least[sure].sum()), int(most.sum())
            rows = float(bounds[0])
            if bounds[0] < bounds[1]:
                shares = reduce(np.multiply, [rows.mean / np.maximum(all_rows, 1) for rows in of_rays])
                mean = weights * all_rows * shares
                mean[sure] = np.clip(mean[sure], least[sure], most[sure])
                rows = float(mean.sum())
            stars.append(Star((index, *(other for other, _, _ in rays)), rows, *bounds))
        return stars

    def _rows(self, table: SparseTable, constraint: Constraint, codes: IntArray) -> _Rows:
        """How many rows of each of the wide column's ``codes`` satisfy a filter on the table's other column."""
        if len(codes) <= FEW_CODES:
            return _rows_of(table, constraint, codes)
        chosen = slice(int(codes[0]), int(codes[-1]) + 1)
        index: slice | IntArray = chosen if chosen.stop - chosen.start == len(codes) else codes
        key = constraint, table
        rows = self._sums.get(key)
        if rows is None:
            rows = _rows_of(table, constraint, np.arange(len(table.starts) - 1))
            if len(self._sums) >= MOST_SUMS:
                self._sums = {}
            self._sums[key] = rows
        if rows.most is rows.mean:
            counts = rows.most[index]
            return _Rows(counts, counts, counts)
        return _Rows(rows.most[index], rows.least[index], rows.mean[index])


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
        sums = _sums(rows * weights, begins, ends > starts)
        return _Rows(sums, sums, sums)
    most, least, mean = (_sums(rows * part, begins, ends > starts) for part in (weights > 0, weights == 1, weights))
    return _Rows(most, least, mean)


def _sums(values: NDArray[Any], begins: IntArray, has_cells: BoolArray) -> NDArray[Any]:
    """The sum of each code's cells, from where they begin; 0 of a code that has none."""
    if len(values) == len(begins) and has_cells.all():  # one each
        return values
    sums = np.zeros(len(begins), dtype=values.dtype)
    if has_cells.any():
        sums[has_cells] = np.add.reduceat(values, begins[has_cells])
    return sums
