"""Incremental updates of exact counts: the counts of new rows are added to the stored ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.columns.digits import from_digits
from countless.data.encoding.schema_growth import NEW, Growth
from countless.data.encoding.table import Table
from countless.data.summaries.pair_counts import MOST_BUCKETS, Pairs, smallest
from countless.data.summaries.sparse_pairs import SparseTable


def added_pairs(pairs: Pairs, growth: Growth, table: Table) -> Pairs:
    """The counts of the old rows and those of ``table``, whose codes are the new ones."""
    moved = _moved(pairs, growth)
    columns = table.schema.modelled
    codes = [
        from_digits(tuple(table.codes[position] for position in own), column.radices)
        for own, column in zip(table.schema.spans, columns, strict=True)
    ]
    counts = tuple(
        own + np.bincount(each, minlength=column.size)
        for own, each, column in zip(moved.counts, codes, columns, strict=True)
    )
    inside = [
        bucket_of(own, len(counts[column]))[codes[column]]
        for column, own in zip(moved.members, moved.starts, strict=True)
    ]
    tables: dict[tuple[int, int], NDArray[Any]] = {}
    for (one, two), cells in moved.tables.items():
        width = cells.shape[1]
        met = np.bincount(inside[one] * width + inside[two], minlength=cells.size).reshape(cells.shape)
        tables[one, two] = smallest(cells.astype(np.int64) + met)
    sparse = tuple(_added_sparse(each, growth, codes) for each in pairs.sparse)
    return replace(moved, rows=moved.rows + table.rows, counts=counts, tables=tables, sparse=sparse)


def bucket_of(starts: IntArray, size: int) -> IntArray:
    """The bucket of each of ``size`` codes.

    >>> bucket_of(np.array([0, 2, 3]), 5).tolist()
    [0, 0, 1, 2, 2]
    """
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=size))


def _moved(pairs: Pairs, growth: Growth) -> Pairs:
    """The same counts by the new codes; those of new values are zero."""
    counts = []
    for own, origin in zip(pairs.counts, growth.origins, strict=True):
        counts.append(np.where(origin == NEW, 0, own[np.maximum(origin, 0)]))
    room = MOST_BUCKETS - sum(map(len, pairs.starts))
    starts, sources = [], []
    for index, column in enumerate(pairs.members):
        null = growth.schema.modelled[column].has_null
        own, source = new_buckets(pairs.starts[index], growth.origins[column], room, null)
        room -= len(own) - len(pairs.starts[index])
        starts.append(own)
        sources.append(source)
    tables = {
        (one, two): _spread(_spread(table, sources[one]).T, sources[two]).T
        for (one, two), table in pairs.tables.items()
    }
    return replace(pairs, counts=tuple(counts), starts=tuple(starts), tables=tables)


def new_buckets(starts: IntArray, origin: IntArray, room: int, has_null: bool) -> tuple[IntArray, IntArray]:
    """Where buckets start among the new codes, and the old bucket that each is, or NEW.

    A new code within a bucket of several codes joins it; between others it has a bucket of its own, while there is
    ``room`` for this many more. Else it joins the one before it, or the first of all. NULL, the last code, is alone.

    >>> new_buckets(np.array([0, 1, 3]), np.array([0, -1, 1, -1, 2, 3, -1]), 9, has_null=True)
    (array([0, 1, 2, 5, 6]), array([ 0, -1,  1,  2, -1]))
    """
    bucket = bucket_of(starts, int(origin.max(initial=-1)) + 1)
    several = np.bincount(bucket, minlength=len(starts)) > 1
    found: list[tuple[int, int]] = []  # the first code of each bucket, and the old bucket
    for code, old in enumerate(origin.tolist()):
        own = NEW if old == NEW else int(bucket[old])
        if own != NEW:
            if not found or found[-1][1] != own:
                found.append((code, own))
            continue
        joins = bool(found) and found[-1][1] != NEW and bool(several[found[-1][1]])
        joins |= not found and bool(several[0])
        joins &= not (has_null and code == len(origin) - 1)
        if not joins and room > 0:
            found.append((code, NEW))
            room -= 1
    first = np.array([code for code, _ in found], dtype=np.int64)
    first[0] = 0
    return first, np.array([old for _, old in found], dtype=np.int64)


def _added_sparse(table: SparseTable, growth: Growth, codes: Sequence[IntArray]) -> SparseTable:
    """The cells of a sparse table by the new codes, and those of the new rows' ``codes``."""

    def moved(column: int, old: IntArray) -> IntArray:
        origin = growth.origins[column]
        kept = np.flatnonzero(origin != NEW)
        new = np.zeros(int(origin.max(initial=-1)) + 1, dtype=np.int64)
        new[origin[kept]] = kept
        return np.concatenate([new[old], codes[column]])

    ones, twos = moved(table.column, table.ones), moved(table.other, table.codes)
    rows = np.concatenate([table.rows, np.ones(len(codes[table.column]), dtype=np.int64)])
    return SparseTable.of_cells(table.column, table.other, len(growth.origins[table.column]), ones, twos, rows)


def _spread(table: NDArray[Any], sources: IntArray) -> NDArray[Any]:
    """The rows of a table under new buckets: none where there was none."""
    moved = table[np.maximum(sources, 0)].astype(np.int64)
    moved[sources == NEW] = 0
    return moved
