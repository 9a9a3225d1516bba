"""Counting of a table's rows by column value and by pairs of column values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.columns.schema import Column
from countless.data.encoding.table import Table
from countless.data.summaries.pair_counts import MOST_BUCKETS, MOST_MEMBERS, Pairs, smallest
from countless.data.summaries.sparse_counting import SparseCounter, most_sparse_bytes

BUCKETS = (128, 64, 32, 16, 8, 4, 2)  # tried in turn, as the number of buckets of a column with more codes
MOST_BYTES = 1_000_000  # of all tables of pairs in a file, about


def count_pairs(
    table: Table, most_bytes: int = MOST_BYTES, tell: Callable[[float], None] = lambda fraction: None
) -> Pairs:
    """The counts of every column except text, and of pairs of columns. If not all pairs fit, the most informative do.

    In pairs, a column with many codes is counted by buckets, and also code by code if few codes occur together.
    ``tell`` receives the fraction of the work that is done.
    """
    schema = table.schema
    counts = table.counts
    members = _members(counts)
    starts = _starts([counts[index] for index in members], [schema.modelled[index] for index in members])
    buckets = [
        np.repeat(np.arange(len(first_codes)), np.diff(first_codes, append=len(counts[index])))
        for index, first_codes in zip(members, starts, strict=True)
    ]
    pairs = list(combinations(range(len(members)), 2))
    cells = {pair: np.zeros(len(starts[pair[0]]) * len(starts[pair[1]]), dtype=np.int64) for pair in pairs}
    widths = [len(counts[index]) for index in members]
    sparse = SparseCounter(members, widths, list(map(len, starts)), most_sparse_bytes(schema.rows))
    done = 0
    for codes in table.blocks():
        sparse.add(codes)
        row_buckets = [bucket_of_code[codes[index]] for index, bucket_of_code in zip(members, buckets, strict=True)]
        for first, second in pairs:
            table_cells = cells[first, second]
            keys = row_buckets[first] * len(starts[second]) + row_buckets[second]
            table_cells += np.bincount(keys, minlength=len(table_cells))
        done += len(codes[0])
        tell(done / table.rows)
    all_tables = {pair: smallest(cells[pair].reshape(-1, len(starts[pair[1]]))) for pair in pairs}
    tables = _most_informative(all_tables, most_bytes)
    member_index = {column: index for index, column in enumerate(members)}

    def stored_information(column: int, other: int) -> float:
        first, second = sorted((member_index[column], member_index[other]))
        return information(tables[first, second]) if (first, second) in tables else 0.0

    return Pairs(schema.rows, counts, tuple(members), tuple(starts), tables, sparse.tables(stored_information))


def bucket_starts(counts: IntArray, most: int, has_null: bool) -> IntArray:
    """The first code of each of about ``most`` buckets with about equally many rows.

    A code with more rows than that has its own bucket, and so has NULL, the last code.

    >>> bucket_starts(np.array([1, 1, 9, 1, 1, 1, 1, 5]), 4, has_null=True).tolist()
    [0, 2, 3, 4, 7]
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    alone = np.zeros(size, dtype=bool)
    alone[-1] = has_null
    while True:
        bucket_rows = counts[~alone].sum() / max(1, most - alone.sum())
        still_alone = alone | (counts >= bucket_rows)
        if np.array_equal(still_alone, alone):
            break
        alone = still_alone
    shared = np.where(alone, 0, counts)
    bucket = (np.cumsum(shared) - shared) // max(bucket_rows, 1.0)
    is_start = np.ones(size, dtype=bool)
    is_start[1:] = alone[1:] | alone[:-1] | (bucket[1:] != bucket[:-1])
    return np.flatnonzero(is_start)


def information(table: NDArray[Any]) -> float:
    """The mutual information of two columns, given the table of their counts, in bits per row.

    >>> information(np.array([[2, 0], [0, 2]])), information(np.array([[1, 1], [1, 1]]))
    (1.0, 0.0)
    """
    shares = table / table.sum()
    independent = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    occurs = table > 0
    return float(shares[occurs] @ np.log2(shares[occurs] / independent[occurs]))


def _members(counts: Sequence[IntArray]) -> list[int]:
    """The columns that are counted in pairs: all, or those of highest entropy."""
    if len(counts) <= MOST_MEMBERS:
        return list(range(len(counts)))
    entropies = []
    for code_counts in counts:
        shares = code_counts[code_counts > 0] / code_counts.sum()
        entropies.append(float(-shares @ np.log2(shares)))
    return sorted(np.argsort(entropies, kind="stable")[-MOST_MEMBERS:].tolist())


def _starts(counts: Sequence[IntArray], columns: Sequence[Column]) -> list[IntArray]:
    """The first codes of each column's buckets: the largest of BUCKETS with which all columns fit in MOST_BUCKETS."""
    starts: list[IntArray] = []
    for most in BUCKETS:
        starts = [
            bucket_starts(code_counts, most, column.has_null)
            for code_counts, column in zip(counts, columns, strict=True)
        ]
        if sum(map(len, starts)) <= MOST_BUCKETS:
            break
    return starts


def _most_informative(
    tables: dict[tuple[int, int], NDArray[Any]], most_bytes: int
) -> dict[tuple[int, int], NDArray[Any]]:
    """The tables with most information for their size, up to ``most_bytes`` in all; in the order of the members."""
    sizes = {pair: _size(table) for pair, table in tables.items()}
    if sum(sizes.values()) <= most_bytes:
        return tables
    ranked = sorted(tables, key=lambda pair: information(tables[pair]) / sizes[pair], reverse=True)
    is_full = np.cumsum([sizes[pair] for pair in ranked]) > most_bytes
    selected = set(ranked[: int(np.argmax(is_full))])
    return {pair: table for pair, table in tables.items() if pair in selected}


def _size(table: NDArray[Any]) -> int:
    """The approximate bytes of a table in a file."""
    return len(zlib.compress(table.tobytes(), 1))
