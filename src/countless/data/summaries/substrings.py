"""Counted substrings: how many rows of a text column contain each frequent substring.

The beginning and the end of a string are symbols of their own. So prefixes, suffixes and whole strings are substrings
too. They are kept as a tree in which a run without branches, and without a change of the count, is one node.
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

END, BEGIN = 1, 3  # after the characters: where a text column has END, and NULL, which is in no string (TextColumn)
DEVIATIONS = 3.0  # standard deviations of a sample's count within which the truth is held to lie
PRESET = 1  # of the compression
HEAD = 8  # numbers
LARGEST = 1 << 40  # of the numbers in a file
ARRAYS = ("steps", "lengths", "labels", "counts", "extras")


class LongestPart(NamedTuple):
    """The longest part of some symbols that is counted: how many symbols it has, and in how many rows it is."""

    length: int
    rows: int


@dataclass(frozen=True, eq=False)
class Substrings:
    """The substrings that at least ``threshold`` of the ``rows`` contain, and how many do.

    A row counts once, however often it has the substring. ``nulls`` rows are NULL. Substrings have up to ``longest``
    symbols of an alphabet of this many ``characters``; one that is not there is in at most ``unseen`` rows. If only
    ``sampled`` rows were looked at, the counts are scaled up from these.

    The nodes of the tree are in the order of a walk from the root: ``levels`` has how deep each is, ``labels`` the
    symbols from its parent to it, which begin at ``starts``, and ``counts`` its rows. ``extras`` has how many rows more
    contain it if upper and lower case are the same.
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
        """Whether every row was looked at."""
        return self.sampled is None

    def __len__(self) -> int:
        return len(self.levels)

    def most(self, count: float) -> float:
        """The most rows that a substring may have, if the summary says ``count``: of a sample, with room for chance."""
        if self.sampled is None:
            return count
        seen = count * self.sampled / max(1, self.rows)
        return (seen + DEVIATIONS * (math.sqrt(seen) + 1.0)) * self.rows / max(1, self.sampled)

    def count(self, symbols: Sequence[int] | IntArray, folded: bool = False) -> int | None:
        """The rows that contain these symbols in a row; None if they are not counted.

        If ``folded``, upper and lower case are the same; the symbols are those of lower case.
        """
        found = self.longest_from(symbols, 0, folded)
        return found.rows if found.length == len(symbols) else None

    def longest_from(self, symbols: Sequence[int] | IntArray, start: int, folded: bool = False) -> LongestPart:
        """The longest counted part of ``symbols`` that begins at ``start``."""
        if self._module is None:
            length, node = self.longest_by_python(symbols, start)
        else:
            own = symbols if isinstance(symbols, tuple) else tuple(symbols)
            child = self._first.get(int(own[start]), len(self.levels)) if start < len(own) else 0
            length, node = self._module.longest(*self._arrays, own, start, child)
        if node < 0:
            return LongestPart(length, self.rows - self.nulls)
        return LongestPart(length, int(self.counts[node] + (self.extras[node] if folded else 0)))

    def longest_by_python(self, symbols: Sequence[int] | IntArray, start: int) -> tuple[int, int]:
        """How many of the symbols from ``start`` on the tree has, and the last node that they come to, or -1."""
        labels, heads, starts, after = (array.data for array in self._arrays)
        node, end, place = -1, len(self.levels), start
        while place < len(symbols):
            symbol = symbols[place]
            child = self._first.get(int(symbol), end) if node < 0 else node + 1
            while child < end and heads[child] != symbol:
                child = after[child]
            if child >= end:
                break
            node, end = child, min(after[child], end)
            label = labels[starts[node] : starts[node + 1]]
            same = 0
            while same < len(label) and place < len(symbols) and label[same] == symbols[place]:
                same, place = same + 1, place + 1
            if same < len(label):
                break
        return place - start, node

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.uint16], NDArray[np.uint16], IntArray, IntArray]:
        """Labels, the first symbol of each, where they start, and the next node of each."""
        return self.labels, self.labels[self.starts[:-1]], self.starts, self._after

    @cached_property
    def _module(self) -> ModuleType | None:
        """The compiled module, unless it was not built."""
        try:
            from countless.data import _substrings
        except ImportError:
            return None
        module: ModuleType = _substrings
        return module

    @cached_property
    def _after(self) -> IntArray:
        """Of each node the next one of the same level, perhaps of another parent."""
        if self._module is None:
            return self.next_of_level_by_numpy()
        after: IntArray = np.empty(len(self.levels), dtype=np.int64)
        self._module.next_of_level(self.levels, after)
        return after

    def next_of_level_by_numpy(self) -> IntArray:
        """The same without the compiled module."""
        order = np.argsort(self.levels, kind="stable")
        after = np.full(len(order), len(order), dtype=np.int64)
        same = np.flatnonzero(np.diff(self.levels[order]) == 0)
        after[order[same]] = order[same + 1]
        return after

    @cached_property
    def _first(self) -> dict[int, int]:
        """The node of each symbol that a substring may begin with."""
        roots = np.flatnonzero(self.levels == 1)
        return dict(zip(self.labels[self.starts[roots]].tolist(), roots.tolist(), strict=True))

    def symbols_of(self, node: int) -> list[int]:
        """The symbols of the substring at a node."""
        found: list[int] = []
        level = int(self.levels[node]) + 1
        while level > 1:
            level -= 1
            while self.levels[node] != level:
                node -= 1
            found = self.labels[self.starts[node] : self.starts[node + 1]].tolist() + found
        return found

    def trie(self) -> Trie:
        """All substrings, a node each; the last one of a node of the tree has its count, and the others before too."""
        return Trie.expanded(self.levels, self.starts, self.labels, self.counts, self.extras, self.rows)

    def scaled(self, rows: int, nulls: int, looked_at: int) -> Substrings:
        """This summary, of ``looked_at`` random rows, as that of all ``rows``."""
        factor = rows / max(1, looked_at)
        scaled = [np.rint(each * factor).astype(np.int64) for each in (self.counts, self.extras)]
        counts = np.minimum(scaled[0], rows - nulls)
        return replace(
            self,
            rows=rows,
            nulls=nulls,
            threshold=max(1, int(self.threshold * factor)),
            unseen=math.ceil(replace(self, sampled=looked_at, rows=rows).most(self.unseen * factor)),
            counts=counts,
            extras=np.minimum(scaled[1], rows - nulls - counts),
            sampled=looked_at,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Compact arrays for the model file."""
        levels = self.levels.astype(np.int64)
        sampled = 0 if self.sampled is None else self.sampled
        head = [self.characters, self.rows, self.nulls, self.threshold, self.unseen, self.longest, sampled, len(self)]
        steps = np.concatenate([[0], levels[:-1]]) + 1 - levels  # how far up the next node is
        parts: list[NDArray[Any]] = [steps, np.diff(self.starts), self.labels, self.counts, self.extras]
        packed = {f"substrings.{name}": _packed(part) for name, part in zip(ARRAYS, parts, strict=True)}
        return {"substrings.head": np.array(head, dtype=np.int64), **packed}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], characters: int) -> Substrings:
        """The summary that :meth:`arrays` wrote, of an alphabet of this many characters."""
        try:
            head = arrays["substrings.head"]
            if head.dtype != np.int64 or head.shape != (HEAD,):
                raise ValueError("a wrong head")
            own, rows, nulls, threshold, unseen, longest, sampled, nodes = map(int, head)
            steps, lengths, labels, counts, extras = (_unpacked(arrays[f"substrings.{name}"]) for name in ARRAYS)
            levels = np.cumsum(1 - steps)
            starts = np.concatenate([[0], np.cumsum(lengths)])
            whole = (
                own == characters
                and {len(part) for part in (steps, lengths, counts, extras)} == {nodes}
                and len(labels) == starts[-1]
                and steps.min(initial=0) >= 0
                and 1 <= levels.min(initial=1) <= levels.max(initial=1) <= longest < 256
                and lengths.min(initial=1) >= 1
                and labels.max(initial=0) <= characters + BEGIN
                and 0 <= sampled <= rows <= LARGEST
                and min(nulls, unseen, extras.min(initial=0)) >= 0
                and threshold >= 1
                and (counts + extras).max(initial=0) <= rows - nulls
            )
            if not whole:
                raise ValueError("the numbers are inconsistent")
        except (KeyError, ValueError, lzma.LZMAError):
            raise ModelFileError(
                "the model file is damaged: its counts of substrings do not fit together; fit the model again"
            ) from None
        tree = (levels.astype(np.uint8), starts, labels.astype(np.uint16), counts, extras)
        return cls(own, rows, nulls, threshold, unseen, longest, *tree, sampled or None)


def _packed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers from 0 on as compressed bytes, one plane for each byte."""
    width = np.min_scalar_type(int(numbers.max(initial=0))).itemsize
    planes = np.ascontiguousarray(numbers.astype(f"<u{width}")).view(np.uint8).reshape(-1, width).T
    data = lzma.compress(planes.tobytes(), preset=PRESET)
    return np.frombuffer(bytes([width]) + data, dtype=np.uint8)


def _unpacked(packed: NDArray[Any]) -> IntArray:
    if packed.dtype != np.uint8 or packed.ndim != 1 or not len(packed) or packed[0] not in (1, 2, 4, 8):
        raise ValueError("these are no numbers")
    width = int(packed[0])
    data = np.frombuffer(lzma.decompress(packed[1:].tobytes()), dtype=np.uint8)
    if len(data) % width:
        raise ValueError("these are no numbers")
    numbers = np.ascontiguousarray(data.reshape(width, -1).T).view(f"<u{width}")[:, 0]
    return numbers.astype(np.int64)
