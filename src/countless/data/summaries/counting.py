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

BUCKETS = (128, 64, 32, 16, 8, 4, 2)  # of a column with more codes than that, or a few more: as many as fit
MOST_BYTES = 1_000_000  # that the tables of pairs have in a file, about


def count_pairs(
    table: Table, most_bytes: int = MOST_BYTES, tell: Callable[[float], None] = lambda fraction: None
) -> Pairs:
    """The counts of every column but text, and of the pairs with most information for their size, if not all fit.

    Pairs with a column of many codes are counted by its buckets, and code by code if few codes occur together. ``tell``
    receives the share of the work that is done.
    """
    schema = table.schema
    counts = table.counts
    members = _members(counts)
    starts = _starts([counts[index] for index in members], [schema.modelled[index] for index in members])
    buckets = [
        np.repeat(np.arange(len(own)), np.diff(own, append=len(counts[index])))
        for index, own in zip(members, starts, strict=True)
    ]
    pairs = list(combinations(range(len(members)), 2))
    cells = {(one, two): np.zeros(len(starts[one]) * len(starts[two]), dtype=np.int64) for one, two in pairs}
    widths = [len(counts[index]) for index in members]
    sparse = SparseCounter(members, widths, list(map(len, starts)), most_sparse_bytes(schema.rows))
    done = 0
    for codes in table.blocks():
        sparse.add(codes)
        inside = [bucket[codes[index]] for index, bucket in zip(members, buckets, strict=True)]
        for one, two in pairs:
            found = cells[one, two]
            found += np.bincount(inside[one] * len(starts[two]) + inside[two], minlength=len(found))
        done += len(codes[0])
        tell(done / table.rows)
    tables = {(one, two): smallest(cells[one, two].reshape(-1, len(starts[two]))) for one, two in pairs}
    chosen = _chosen(tables, most_bytes)
    place = {column: index for index, column in enumerate(members)}

    def known(one: int, two: int) -> float:
        first, second = sorted((place[one], place[two]))
        return information(chosen[first, second]) if (first, second) in chosen else 0.0

    return Pairs(schema.rows, counts, tuple(members), tuple(starts), chosen, sparse.tables(known))


def bucket_starts(counts: IntArray, most: int, has_null: bool) -> IntArray:
    """The first code of each of about ``most`` buckets.

    A code with as many rows as a bucket should have is alone, and so is NULL, the last code.

    >>> bucket_starts(np.array([1, 1, 9, 1, 1, 1, 1, 5]), 4, has_null=True).tolist()
    [0, 2, 3, 4, 7]
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    alone = np.zeros(size, dtype=bool)
    alone[-1] = has_null
    while True:
        fair = counts[~alone].sum() / max(1, most - alone.sum())
        more = alone | (counts >= fair)
        if np.array_equal(more, alone):
            break
        alone = more
    others = np.where(alone, 0, counts)
    part = (np.cumsum(others) - others) // max(fair, 1.0)
    begins = np.ones(size, dtype=bool)
    begins[1:] = alone[1:] | alone[:-1] | (part[1:] != part[:-1])
    return np.flatnonzero(begins)


def information(table: NDArray[Any]) -> float:
    """The mutual information of two columns, in bits a row.

    >>> information(np.array([[2, 0], [0, 2]])), information(np.array([[1, 1], [1, 1]]))
    (1.0, 0.0)
    """
    shares = table / table.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    some = table > 0
    return float(shares[some] @ np.log2(shares[some] / apart[some]))


def _members(counts: Sequence[IntArray]) -> list[int]:
    """The columns that take part in pairs: all, or those of which a row's value is most uncertain."""
    if len(counts) <= MOST_MEMBERS:
        return list(range(len(counts)))
    entropies = []
    for each in counts:
        shares = each[each > 0] / each.sum()
        entropies.append(float(-shares @ np.log2(shares)))
    return sorted(np.argsort(entropies, kind="stable")[-MOST_MEMBERS:].tolist())


def _starts(counts: Sequence[IntArray], columns: Sequence[Column]) -> list[IntArray]:
    """The buckets of each column: as many as fit together."""
    found: list[IntArray] = []
    for most in BUCKETS:
        found = [bucket_starts(each, most, column.has_null) for each, column in zip(counts, columns, strict=True)]
        if sum(map(len, found)) <= MOST_BUCKETS:
            break
    return found


def _chosen(tables: dict[tuple[int, int], NDArray[Any]], most_bytes: int) -> dict[tuple[int, int], NDArray[Any]]:
    """The tables with most information for their size, until they are full; in the order of the members."""
    sizes = {pair: _size(table) for pair, table in tables.items()}
    if sum(sizes.values()) <= most_bytes:
        return tables
    ranked = sorted(tables, key=lambda pair: information(tables[pair]) / sizes[pair], reverse=True)
    full = np.cumsum([sizes[pair] for pair in ranked]) > most_bytes
    kept = set(ranked[: int(np.argmax(full))])
    return {pair: table for pair, table in tables.items() if pair in kept}


def _size(table: NDArray[Any]) -> int:
    """The bytes of a table in a file, about."""
    return len(zlib.compress(table.tobytes(), 1))
