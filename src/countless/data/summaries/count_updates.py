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
    """The counts of the old rows plus those of the new rows in ``table``, by the new codes."""
    moved = _moved(pairs, growth)
    columns = table.schema.modelled
    codes = [
        from_digits(tuple(table.codes[position] for position in span), column.radices)
        for span, column in zip(table.schema.spans, columns, strict=True)
    ]
    counts = tuple(
        old_counts + np.bincount(column_codes, minlength=column.size)
        for old_counts, column_codes, column in zip(moved.counts, codes, columns, strict=True)
    )
    row_buckets = [
        bucket_of(starts, len(counts[column]))[codes[column]]
        for column, starts in zip(moved.members, moved.starts, strict=True)
    ]
    tables: dict[tuple[int, int], NDArray[Any]] = {}
    for (first, second), old_cells in moved.tables.items():
        keys = row_buckets[first] * old_cells.shape[1] + row_buckets[second]
        new_cells = np.bincount(keys, minlength=old_cells.size).reshape(old_cells.shape)
        tables[first, second] = smallest(old_cells.astype(np.int64) + new_cells)
    sparse = tuple(_added_sparse(sparse_table, growth, codes) for sparse_table in pairs.sparse)
    return replace(moved, rows=moved.rows + table.rows, counts=counts, tables=tables, sparse=sparse)


def bucket_of(starts: IntArray, size: int) -> IntArray:
    """The bucket of each of ``size`` codes.

    >>> bucket_of(np.array([0, 2, 3]), 5).tolist()
    [0, 0, 1, 2, 2]
    """
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=size))


def _moved(pairs: Pairs, growth: Growth) -> Pairs:
    """The old rows' counts by the new codes and buckets; those of new values are zero."""
    counts = []
    for old_counts, origin in zip(pairs.counts, growth.origins, strict=True):
        counts.append(np.where(origin == NEW, 0, old_counts[np.maximum(origin, 0)]))
    room = MOST_BUCKETS - sum(map(len, pairs.starts))
    starts, bucket_origins = [], []
    for index, column in enumerate(pairs.members):
        has_null = growth.schema.modelled[column].has_null
        new_starts, bucket_origin = new_buckets(pairs.starts[index], growth.origins[column], room, has_null)
        room -= len(new_starts) - len(pairs.starts[index])
        starts.append(new_starts)
        bucket_origins.append(bucket_origin)
    tables = {
        (first, second): _moved_rows(_moved_rows(table, bucket_origins[first]).T, bucket_origins[second]).T
        for (first, second), table in pairs.tables.items()
    }
    return replace(pairs, counts=tuple(counts), starts=tuple(starts), tables=tables)


def new_buckets(starts: IntArray, origin: IntArray, room: int, has_null: bool) -> tuple[IntArray, IntArray]:
    """The first new code of each bucket, and its origin: the old bucket, or NEW.

    A new code inside a bucket of several codes joins it. Between other buckets it gets its own, for up to ``room`` new
    buckets; then it joins the bucket before it, or the first one. NULL, the last code, has its own bucket.

    >>> new_buckets(np.array([0, 1, 3]), np.array([0, -1, 1, -1, 2, 3, -1]), 9, has_null=True)
    (array([0, 1, 2, 5, 6]), array([ 0, -1,  1,  2, -1]))
    """
    bucket = bucket_of(starts, int(origin.max(initial=-1)) + 1)
    has_several_codes = np.bincount(bucket, minlength=len(starts)) > 1
    buckets: list[tuple[int, int]] = []  # first code and origin of each new bucket
    for code, old_code in enumerate(origin.tolist()):
        if old_code != NEW:
            old_bucket = int(bucket[old_code])
            if not buckets or buckets[-1][1] != old_bucket:
                buckets.append((code, old_bucket))
            continue
        joins = bool(buckets) and buckets[-1][1] != NEW and bool(has_several_codes[buckets[-1][1]])
        joins |= not buckets and bool(has_several_codes[0])
        joins &= not (has_null and code == len(origin) - 1)
        if not joins and room > 0:
            buckets.append((code, NEW))
            room -= 1
    first_codes = np.array([code for code, _ in buckets], dtype=np.int64)
    first_codes[0] = 0
    return first_codes, np.array([old_bucket for _, old_bucket in buckets], dtype=np.int64)


def _added_sparse(table: SparseTable, growth: Growth, codes: Sequence[IntArray]) -> SparseTable:
    """A sparse table by the new codes, with the cells of new rows, which have these ``codes``."""

    def all_codes(column: int, old_codes: IntArray) -> IntArray:
        return np.concatenate([growth.codes(column)[old_codes], codes[column]])

    size = len(growth.origins[table.column])
    column_codes, other_codes = all_codes(table.column, table.column_codes), all_codes(table.other, table.codes)
    rows = np.concatenate([table.rows, np.ones(len(codes[table.column]), dtype=np.int64)])
    return SparseTable.of_cells(table.column, table.other, size, column_codes, other_codes, rows)


def _moved_rows(table: NDArray[Any], bucket_origin: IntArray) -> NDArray[Any]:
    """The rows of a table by new buckets; those of buckets that are NEW are zero."""
    moved = table[np.maximum(bucket_origin, 0)].astype(np.int64)
    moved[bucket_origin == NEW] = 0
    return moved
