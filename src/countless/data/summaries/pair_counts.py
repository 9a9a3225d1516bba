"""Value and pair counts: how many rows have each value of a column, and each pair of values of two columns.

A column with many codes takes part in pairs by *buckets*: neighbouring codes with about as many rows together, a
frequent code or NULL alone (:mod:`.counting`). Of two columns the counts are a table, with a row for each
bucket of the first and a column for each of the second. Where few codes occur together, they are also counted code by
code (:mod:`.sparse_pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.cached_property import cached_property
from countless.data.columns.schema import Schema
from countless.data.summaries.integer_packing import packed, unpacked
from countless.data.summaries.sparse_pairs import KINDS as SPARSE_KINDS
from countless.data.summaries.sparse_pairs import SparseTable, read_sparse, sparse_arrays
from countless.errors import ModelFileError

MOST_MEMBERS = 100  # columns that take part in pairs
MOST_BUCKETS = 2_048  # that they have in all
KINDS = {
    "pairs.sizes": np.int64,
    "pairs.counts": np.uint8,
    "pairs.starts": np.uint8,
    "pairs.which": np.uint8,
    "pairs.cells": np.uint8,
    **SPARSE_KINDS,
}

Tables = Mapping[tuple[int, int], NDArray[Any]]  # by the places of two members, the lower one first


@dataclass(frozen=True, eq=False)
class Pairs:
    """The rows of every code of each column, and of every two buckets of some pairs of columns.

    ``members`` are the columns that take part in pairs, ascending, and ``starts`` has the first code of each of their
    buckets. ``tables`` has the counts of pairs of members, by their places, and ``sparse`` those of codes that occur
    together.
    """

    rows: int
    counts: tuple[IntArray, ...]
    members: tuple[int, ...]
    starts: tuple[IntArray, ...]
    tables: Tables
    sparse: tuple[SparseTable, ...] = ()

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each column among the members."""
        return {column: place for place, column in enumerate(self.members)}

    @cached_property
    def buckets(self) -> tuple[IntArray, ...]:
        """The rows of every bucket of each member."""
        return tuple(
            np.add.reduceat(self.counts[column], own) for column, own in zip(self.members, self.starts, strict=True)
        )

    def code_by_code(self, one: int, two: int) -> NDArray[Any] | None:
        """The rows of every two codes of two columns; None unless they are a pair, and every bucket one code."""
        places = [self.place.get(column) for column in (one, two)]
        if None in places or any(
            len(self.starts[place]) < len(self.counts[column])
            for place, column in zip(places, (one, two), strict=True)
            if place is not None
        ):
            return None
        first, second = places
        if (first, second) in self.tables:
            return self.tables[first, second]  # type: ignore[index]
        table = self.tables.get((second, first))  # type: ignore[arg-type]
        return None if table is None else table.T

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Compact arrays for the model file."""
        buckets = np.zeros(len(self.counts), dtype=np.int64)  # 0 for a column that is not in any pair
        buckets[list(self.members)] = [len(own) for own in self.starts]
        gaps = [np.diff(own, prepend=0) for own in self.starts]
        which = [pair in self.tables for pair in combinations(range(len(self.members)), 2)]
        return {
            "pairs.sizes": np.array([self.rows, *buckets], dtype=np.int64),
            "pairs.counts": packed(_joined(self.counts)),
            "pairs.starts": packed(_joined(gaps)),
            "pairs.which": packed(np.array(which, dtype=np.int64)),
            "pairs.cells": packed(_joined([table.ravel() for table in self.tables.values()])),
            **sparse_arrays(self.sparse),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Pairs:
        """The summary that :meth:`arrays` wrote, of a table with this schema."""
        try:
            for name, kind in KINDS.items():
                _insist(name in arrays and arrays[name].dtype == kind and arrays[name].ndim == 1)
            return cls._read(arrays, schema)
        except ValueError:
            raise ModelFileError(
                "the model file is damaged: its counts of columns do not fit together; fit the model again"
            ) from None

    @classmethod
    def _read(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Pairs:
        codes = [column.size for column in schema.modelled]
        rows, *buckets = arrays["pairs.sizes"].tolist()
        _insist(rows == schema.rows and len(buckets) == len(codes))
        _insist(all(0 <= count <= most for count, most in zip(buckets, codes, strict=True)))
        members = [column for column, count in enumerate(buckets) if count]
        _insist(len(members) <= MOST_MEMBERS and sum(buckets) <= MOST_BUCKETS)
        counts = _split(unpacked(arrays["pairs.counts"], sum(codes)), codes)
        for each in counts:
            _insist(each.min() >= 0 and each.max() <= rows and each.sum() == rows)
        sizes = [buckets[column] for column in members]
        starts = []
        for column, gaps in zip(members, _split(unpacked(arrays["pairs.starts"], sum(sizes)), sizes), strict=True):
            _insist(gaps[0] == 0 and gaps[1:].min(initial=1) >= 1 and gaps.max() < codes[column])
            starts.append(np.cumsum(gaps))
            _insist(starts[-1][-1] < codes[column])
        pairs = list(combinations(range(len(members)), 2))
        which = unpacked(arrays["pairs.which"], len(pairs))
        _insist(bool(np.isin(which, (0, 1)).all()))
        pairs = [pair for pair, stored in zip(pairs, which, strict=True) if stored]
        areas = [sizes[one] * sizes[two] for one, two in pairs]
        numbers = unpacked(arrays["pairs.cells"], sum(areas))
        _insist(numbers.min(initial=0) >= 0 and numbers.max(initial=0) <= rows)
        cells = _split(numbers, areas)
        tables: dict[tuple[int, int], NDArray[Any]] = {}
        found = cls(rows, tuple(counts), tuple(members), tuple(starts), tables, read_sparse(arrays, counts))
        for (one, two), part in zip(pairs, cells, strict=True):
            table = part.reshape(sizes[one], sizes[two])
            _insist(np.array_equal(np.add.reduce(table, axis=1), found.buckets[one]))
            _insist(np.array_equal(np.add.reduce(table, axis=0), found.buckets[two]))
            tables[one, two] = smallest(table)
        return found


def smallest(table: NDArray[Any]) -> NDArray[Any]:
    """The table in the smallest type that holds it."""
    return table.astype(np.min_scalar_type(int(table.max())))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _split(numbers: IntArray, sizes: Sequence[int]) -> list[IntArray]:
    return np.split(numbers, np.cumsum(sizes)[:-1]) if sizes else []


def _insist(holds: bool | np.bool_) -> None:
    if not holds:
        raise ValueError
