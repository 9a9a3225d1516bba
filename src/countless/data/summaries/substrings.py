"""Counted substrings: how many rows of a text column contain each frequent substring.

The beginning and the end of a string are symbols too, so prefixes, suffixes and whole strings are also substrings. They
are stored as a tree in which a run of symbols without branches, and without a change of the count, is one node.
"""

from __future__ import annotations

import lzma
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.cached_property import cached_property
from countless.data.summaries.substring_tries import Trie
from countless.errors import ModelFileError

END, BEGIN = 1, 3  # symbols after the characters: END as in a text column, and BEGIN in place of its NULL (Alphabet)
DEVIATIONS = 3.0  # standard deviations that the true count may differ from that of a sample
PRESET = 1  # level of the compression
HEAD = 8  # length of the head
MOST_ROWS = 1 << 40  # in a file
ARRAYS = ("steps", "lengths", "labels", "counts", "extras")


class LongestPart(NamedTuple):
    """The longest counted part of some symbols: its length, and the number of rows that contain it."""

    length: int
    rows: int


@dataclass(frozen=True, eq=False)
class Substrings:
    """The substrings that at least ``threshold`` of the ``rows`` contain, and the number of rows that do.

    A row counts once, however often it contains the substring. ``nulls`` rows are NULL. Substrings have up to
    ``longest`` symbols of an alphabet of this many ``characters``. A substring that is not counted is in at most
    ``unseen`` rows. If only ``sampled`` rows were counted, the counts are scaled up.

    The nodes of the tree are in depth-first order: ``levels`` has the depth of each, ``labels`` the symbols between its
    parent and it, beginning at ``starts``, and ``counts`` its rows. ``extras`` has the number of additional rows if
    upper and lower case are the same.
    """

    characters: int
    rows: int
    nulls: int
    threshold: int
    unseen: int
    longest: int
    levels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    labels: NDArray[np.uint16]
    counts: IntArray
    extras: IntArray
    sampled: int | None = None

    @property
    def begin(self) -> int:
        """The symbol before every string."""
        return self.characters + BEGIN

    @property
    def end(self) -> int:
        """The symbol after every string."""
        return self.characters + END

    @property
    def is_exact(self) -> bool:
        """Whether every row was counted."""
        return self.sampled is None

    def __len__(self) -> int:
        return len(self.levels)

    def most(self, count: float) -> float:
        """The most rows that contain a substring whose count is ``count``: for a sample, with a margin for chance."""
        if self.sampled is None:
            return count
        in_sample = count * self.sampled / max(1, self.rows)
        return (in_sample + DEVIATIONS * (math.sqrt(in_sample) + 1.0)) * self.rows / max(1, self.sampled)

    def count(self, symbols: Sequence[int] | IntArray, folded: bool = False) -> int | None:
        """The number of rows that contain these symbols next to each other; None if that is not counted.

        If ``folded``, upper and lower case are the same, and the symbols are those of lower case.
        """
        part = self.longest_from(symbols, 0, folded)
        return part.rows if part.length == len(symbols) else None

    def longest_from(self, symbols: Sequence[int] | IntArray, start: int, folded: bool = False) -> LongestPart:
        """The longest counted part of ``symbols`` that begins at ``start``."""
        if self._module is None:
            length, node = self.longest_by_python(symbols, start)
        else:
            as_tuple = symbols if isinstance(symbols, tuple) else tuple(symbols)
            child = self._roots.get(int(as_tuple[start]), len(self.levels)) if start < len(as_tuple) else 0
            length, node = self._module.longest(*self._arrays, as_tuple, start, child)
        if node < 0:
            return LongestPart(length, self.rows - self.nulls)
        return LongestPart(length, int(self.counts[node] + (self.extras[node] if folded else 0)))

    def longest_by_python(self, symbols: Sequence[int] | IntArray, start: int) -> tuple[int, int]:
        """The number of symbols from ``start`` on that are a path in the tree, and the path's last node, or -1."""
        labels, heads, starts, after = (array.data for array in self._arrays)
        node, end, index = -1, len(self.levels), start
        while index < len(symbols):
            symbol = symbols[index]
            child = self._roots.get(int(symbol), end) if node < 0 else node + 1
            while child < end and heads[child] != symbol:
                child = after[child]
            if child >= end:
                break
            node, end = child, min(after[child], end)
            label = labels[starts[node] : starts[node + 1]]
            common = 0
            while common < len(label) and index < len(symbols) and label[common] == symbols[index]:
                common, index = common + 1, index + 1
            if common < len(label):
                break
        return index - start, node

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.uint16], NDArray[np.uint16], IntArray, IntArray]:
        """The labels, the first symbol of each, where they start, and the next node of the same level."""
        return self.labels, self.labels[self.starts[:-1]], self.starts, self._after

    @cached_property
    def _module(self) -> ModuleType | None:
        """The compiled module; None if it was not built."""
        try:
            from countless.data import _substrings
        except ImportError:
            return None
        module: ModuleType = _substrings
        return module

    @cached_property
    def _after(self) -> IntArray:
        """For each node the next one of the same level, which may have another parent."""
        if self._module is None:
            return self.next_of_level_by_numpy()
        after: IntArray = np.empty(len(self.levels), dtype=np.int64)
        self._module.next_of_level(self.levels, after)
        return after

    def next_of_level_by_numpy(self) -> IntArray:
        """The next node of the same level, without the compiled module."""
        order = np.argsort(self.levels, kind="stable")
        after = np.full(len(order), len(order), dtype=np.int64)
        same_level = np.flatnonzero(np.diff(self.levels[order]) == 0)
        after[order[same_level]] = order[same_level + 1]
        return after

    @cached_property
    def _roots(self) -> dict[int, int]:
        """The node of the first level for each symbol with which a substring begins."""
        roots = np.flatnonzero(self.levels == 1)
        return dict(zip(self.labels[self.starts[roots]].tolist(), roots.tolist(), strict=True))

    def symbols_of(self, node: int) -> list[int]:
        """The symbols of the substring at a node."""
        symbols: list[int] = []
        level = int(self.levels[node]) + 1
        while level > 1:
            level -= 1
            while self.levels[node] != level:
                node -= 1
            symbols = self.labels[self.starts[node] : self.starts[node + 1]].tolist() + symbols
        return symbols

    def trie(self) -> Trie:
        """All substrings, with a node for each; those within one node of the tree have its count."""
        return Trie.expanded(self.levels, self.starts, self.labels, self.counts, self.extras, self.rows)

    def scaled(self, rows: int, nulls: int, sampled: int) -> Substrings:
        """This summary of ``sampled`` random rows, scaled up to ``rows``."""
        factor = rows / max(1, sampled)
        counts, extras = (np.rint(numbers * factor).astype(np.int64) for numbers in (self.counts, self.extras))
        counts = np.minimum(counts, rows - nulls)
        return replace(
            self,
            rows=rows,
            nulls=nulls,
            threshold=max(1, int(self.threshold * factor)),
            unseen=math.ceil(replace(self, sampled=sampled, rows=rows).most(self.unseen * factor)),
            counts=counts,
            extras=np.minimum(extras, rows - nulls - counts),
            sampled=sampled,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Compact arrays for the model file."""
        levels = self.levels.astype(np.int64)
        sampled = 0 if self.sampled is None else self.sampled
        head = [self.characters, self.rows, self.nulls, self.threshold, self.unseen, self.longest, sampled, len(self)]
        steps = np.concatenate([[0], levels[:-1]]) + 1 - levels  # by how many levels the next node is higher
        parts: list[NDArray[Any]] = [steps, np.diff(self.starts), self.labels, self.counts, self.extras]
        packed = {f"substrings.{name}": _packed(part) for name, part in zip(ARRAYS, parts, strict=True)}
        return {"substrings.head": np.array(head, dtype=np.int64), **packed}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], characters: int) -> Substrings:
        """The summary that :meth:`arrays` wrote, for an alphabet of this many characters."""
        try:
            head = arrays["substrings.head"]
            if head.dtype != np.int64 or head.shape != (HEAD,):
                raise ValueError("a wrong head")
            alphabet_size, rows, nulls, threshold, unseen, longest, sampled, nodes = map(int, head)
            steps, lengths, labels, counts, extras = (_unpacked(arrays[f"substrings.{name}"]) for name in ARRAYS)
            levels = np.cumsum(1 - steps)
            starts = np.concatenate([[0], np.cumsum(lengths)])
            is_consistent = (
                alphabet_size == characters
                and {len(part) for part in (steps, lengths, counts, extras)} == {nodes}
                and len(labels) == starts[-1]
                and steps.min(initial=0) >= 0
                and 1 <= levels.min(initial=1) <= levels.max(initial=1) <= longest < 256
                and lengths.min(initial=1) >= 1
                and labels.max(initial=0) <= characters + BEGIN
                and 0 <= sampled <= rows <= MOST_ROWS
                and min(nulls, unseen, extras.min(initial=0)) >= 0
                and threshold >= 1
                and (counts + extras).max(initial=0) <= rows - nulls
            )
            if not is_consistent:
                raise ValueError("the numbers are inconsistent")
        except (KeyError, ValueError, lzma.LZMAError):
            raise ModelFileError(
                "the model file is damaged: its counts of substrings do not fit together; fit the model again"
            ) from None
        tree = (levels.astype(np.uint8), starts, labels.astype(np.uint16), counts, extras)
        return cls(characters, rows, nulls, threshold, unseen, longest, *tree, sampled or None)


def _packed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers that are not negative as compressed bytes, one plane per byte."""
    width = np.min_scalar_type(int(numbers.max(initial=0))).itemsize
    planes = np.ascontiguousarray(numbers.astype(f"<u{width}")).view(np.uint8).reshape(-1, width).T
    data = lzma.compress(planes.tobytes(), preset=PRESET)
    return np.frombuffer(bytes([width]) + data, dtype=np.uint8)


def _unpacked(packed: NDArray[Any]) -> IntArray:
    """The numbers that :func:`_packed` wrote; a ValueError if it did not."""
    if packed.dtype != np.uint8 or packed.ndim != 1 or not len(packed) or packed[0] not in (1, 2, 4, 8):
        raise ValueError("these are no numbers")
    width = int(packed[0])
    data = np.frombuffer(lzma.decompress(packed[1:].tobytes()), dtype=np.uint8)
    if len(data) % width:
        raise ValueError("these are no numbers")
    numbers = np.ascontiguousarray(data.reshape(width, -1).T).view(f"<u{width}")[:, 0]
    return numbers.astype(np.int64)
