"""Value and pair counts: how many rows have each value of a column, and each pair of values of two columns.

In pairs a column with many codes is divided into *buckets* of neighbouring codes, with about equally many rows each. A
frequent code, or NULL, has its own (:mod:`.counting`). The counts of two columns are a table, with a row for each
bucket of the first column, and a column for each of the second. If few codes occur together, they are also counted
code by code (:mod:`.sparse_pairs`).
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
from countless.data.summaries.integer_packing import packed, require, unpacked, unpacked_parts
from countless.data.summaries.sparse_pairs import KINDS as SPARSE_KINDS
from countless.data.summaries.sparse_pairs import SparseTable, read_sparse, sparse_arrays
from countless.errors import ModelFileError

MOST_MEMBERS = 100  # columns that are counted in pairs
MOST_BUCKETS = 2_048  # of all of them together
KINDS = {
    "pairs.sizes": np.int64,
    "pairs.counts": np.uint8,
    "pairs.starts": np.uint8,
    "pairs.which": np.uint8,
    "pairs.cells": np.uint8,
    **SPARSE_KINDS,
}

Tables = Mapping[tuple[int, int], NDArray[Any]]  # by the indexes of two members, the lower one first


@dataclass(frozen=True, eq=False)
class Pairs:
    """The number of rows of each code of each column, and of each pair of buckets of some pairs of columns.

    ``members`` are the columns that are counted in pairs, ascending; ``starts`` has the first code of each of their
    buckets. ``tables`` has the counts of pairs of members, by their indexes in ``members``. ``sparse`` has the counts
    of codes that occur together.
    """

    rows: int
    counts: tuple[IntArray, ...]
    members: tuple[int, ...]
    starts: tuple[IntArray, ...]
    tables: Tables
    sparse: tuple[SparseTable, ...] = ()

    @cached_property
    def place(self) -> dict[int, int]:
        """The index of each column in ``members``."""
        return {column: index for index, column in enumerate(self.members)}

    @cached_property
    def buckets(self) -> tuple[IntArray, ...]:
        """The number of rows in each bucket of each member."""
        return tuple(
            np.add.reduceat(self.counts[column], starts)
            for column, starts in zip(self.members, self.starts, strict=True)
        )

    def code_by_code(self, column: int, other: int) -> NDArray[Any] | None:
        """The rows of every two codes of two columns; None if the pair is not stored, or only by larger buckets."""
        first, second = self.place.get(column), self.place.get(other)
        if first is None or second is None:
            return None
        if len(self.starts[first]) < len(self.counts[column]) or len(self.starts[second]) < len(self.counts[other]):
            return None
        if (first, second) in self.tables:
            return self.tables[first, second]
        table = self.tables.get((second, first))
        return None if table is None else table.T

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Compact arrays for the model file."""
        buckets = np.zeros(len(self.counts), dtype=np.int64)  # 0 for a column that is not in any pair
        buckets[list(self.members)] = [len(starts) for starts in self.starts]
        gaps = [np.diff(starts, prepend=0) for starts in self.starts]
        is_stored = [pair in self.tables for pair in combinations(range(len(self.members)), 2)]
        return {
            "pairs.sizes": np.array([self.rows, *buckets], dtype=np.int64),
            "pairs.counts": packed(_joined(self.counts)),
            "pairs.starts": packed(_joined(gaps)),
            "pairs.which": packed(np.array(is_stored, dtype=np.int64)),
            "pairs.cells": packed(_joined([table.ravel() for table in self.tables.values()])),
            **sparse_arrays(self.sparse),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Pairs:
        """The counts that :meth:`arrays` wrote, for a table with this schema; anything else is a ModelFileError."""
        try:
            for name, kind in KINDS.items():
                require(name in arrays and arrays[name].dtype == kind and arrays[name].ndim == 1)
            return cls._read(arrays, schema)
        except ValueError:
            raise ModelFileError(
                "the model file is damaged: its counts of columns do not fit together; fit the model again"
            ) from None

    @classmethod
    def _read(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Pairs:
        """The counts that :meth:`arrays` wrote; anything else is a ValueError."""
        sizes = [column.size for column in schema.modelled]
        rows, *buckets = arrays["pairs.sizes"].tolist()
        require(rows == schema.rows and len(buckets) == len(sizes))
        require(all(0 <= count <= size for count, size in zip(buckets, sizes, strict=True)))
        members = [column for column, count in enumerate(buckets) if count]
        require(len(members) <= MOST_MEMBERS and sum(buckets) <= MOST_BUCKETS)
        counts = unpacked_parts(arrays["pairs.counts"], sizes)
        for code_counts in counts:
            require(code_counts.min() >= 0 and code_counts.max() <= rows and code_counts.sum() == rows)
        widths = [buckets[column] for column in members]  # of the tables, by member
        starts = []
        for column, gaps in zip(members, unpacked_parts(arrays["pairs.starts"], widths), strict=True):
            require(gaps[0] == 0 and gaps[1:].min(initial=1) >= 1 and gaps.max() < sizes[column])
            starts.append(np.cumsum(gaps))
            require(starts[-1][-1] < sizes[column])
        pairs = list(combinations(range(len(members)), 2))
        is_stored = unpacked(arrays["pairs.which"], len(pairs))
        require(bool(np.isin(is_stored, (0, 1)).all()))
        pairs = [pair for pair, stored in zip(pairs, is_stored, strict=True) if stored]
        tables: dict[tuple[int, int], NDArray[Any]] = {}
        summary = cls(rows, tuple(counts), tuple(members), tuple(starts), tables, read_sparse(arrays, counts))
        areas = [widths[first] * widths[second] for first, second in pairs]
        for (first, second), cells in zip(pairs, unpacked_parts(arrays["pairs.cells"], areas), strict=True):
            table = cells.reshape(widths[first], widths[second])
            require(cells.min() >= 0)
            require(np.array_equal(np.add.reduce(table, axis=1), summary.buckets[first]))
            require(np.array_equal(np.add.reduce(table, axis=0), summary.buckets[second]))
            tables[first, second] = smallest(table)
        return summary


def smallest(table: NDArray[Any]) -> NDArray[Any]:
    """The table in the smallest type that holds it."""
    return table.astype(np.min_scalar_type(int(table.max())))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts one after the other; there may be none."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
