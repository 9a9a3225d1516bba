"""Tries of substrings, with a node for each, while they are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.cached_property import cached_property


class CompressedTrie(NamedTuple):
    """A trie in which runs are one node: see :class:`.Substrings`."""

    levels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    labels: NDArray[np.uint16]
    counts: IntArray
    extras: IntArray


@dataclass(frozen=True, eq=False)
class Trie:
    """Substrings: node 0 is the empty one, and the others come after their parents, with one more symbol each.

    ``counts`` has the rows that contain each, and ``extras`` how many more do in upper or lower case.
    """

    parents: NDArray[np.int32]
    symbols: NDArray[np.uint16]
    counts: IntArray
    extras: IntArray

    @cached_property
    def levels(self) -> list[IntArray]:
        """The nodes of each length."""
        found = [np.zeros(1, dtype=np.int64)]
        order = np.argsort(self.parents, kind="stable")
        order = order[order > 0]
        own = self.parents[order]
        while len(found[-1]):
            firsts, ends = np.searchsorted(own, found[-1]), np.searchsorted(own, found[-1], side="right")
            found.append(order[spans(firsts, ends)])
        return found[:-1]

    def pruned(self, threshold: int) -> Trie:
        """The substrings of at least this many rows, in whatever case."""
        kept: BoolArray = self.counts + self.extras >= threshold
        kept[0] = True
        return self.only(kept)

    def only(self, kept: BoolArray) -> Trie:
        """Some of the nodes: with each its parent is kept."""
        places = np.cumsum(kept) - 1
        parents = places[self.parents[kept]].astype(np.int32)
        return Trie(parents, self.symbols[kept], self.counts[kept], self.extras[kept])

    def compressed(self) -> CompressedTrie:
        """The same without nodes that have one child only, and its counts."""
        by_length, parents, count = self.levels, self.parents, len(self.parents)
        kept = self._explicit()
        sizes = kept.astype(np.int64)
        for nodes in by_length[:0:-1]:
            np.add.at(sizes, parents[nodes], sizes[nodes])
        order = np.lexsort((self.symbols, parents))
        order = order[order > 0]
        begun = np.cumsum(sizes[order]) - sizes[order]
        new = np.diff(parents[order], prepend=-1) != 0
        before = np.zeros(count, dtype=np.int64)
        before[order] = begun - begun[new][np.cumsum(new) - 1] if len(order) else begun
        places, lengths, depths = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for nodes in by_length[1:]:
            own = parents[nodes]
            places[nodes] = places[own] + kept[own] + before[nodes]
            lengths[nodes] = np.where(kept[own], 0, lengths[own]) + 1
            depths[nodes] = depths[own] + kept[own]
        chosen = np.flatnonzero(kept)[1:]
        chosen = chosen[np.argsort(places[chosen])]
        starts = np.concatenate([[0], np.cumsum(lengths[chosen])])
        labels = np.zeros(starts[-1], dtype=np.uint16)
        here, left = starts[1:].copy(), chosen.copy()
        while len(left):
            here -= 1
            labels[here] = self.symbols[left]
            going = lengths[left] > 1
            here, left = here[going], parents[left[going]].astype(np.int64)
        return CompressedTrie(depths[chosen].astype(np.uint8), starts, labels, self.counts[chosen], self.extras[chosen])

    def _explicit(self) -> BoolArray:
        children = np.bincount(self.parents[1:], minlength=len(self.parents))
        same = (self.counts == self.counts[self.parents]) & (self.extras == self.extras[self.parents])
        kept = np.ones(len(self.parents), dtype=bool)
        kept[self.parents[same & (children[self.parents] == 1)]] = False
        kept[0] = True
        return kept

    @classmethod
    def expanded(
        cls,
        levels: NDArray[np.uint8],
        starts: IntArray,
        labels: NDArray[np.uint16],
        counts: IntArray,
        extras: IntArray,
        rows: int,
    ) -> Trie:
        """The trie of a tree, in the tree's order."""
        owners = np.repeat(np.arange(len(levels)), np.diff(starts))
        parents = np.arange(len(labels), dtype=np.int32)  # the one before, but for the first of a label
        last = np.zeros(int(levels.max(initial=0)) + 1, dtype=np.int32)
        ends = starts[1:].tolist()
        for node, (level, first) in enumerate(zip(levels.tolist(), starts[:-1].tolist(), strict=True)):
            parents[first] = last[level - 1]
            last[level] = ends[node]
        none = np.zeros(1, dtype=np.int64)
        return cls(
            np.concatenate([none.astype(np.int32), parents]),
            np.concatenate([none.astype(np.uint16), labels]),
            np.concatenate([none + rows, counts[owners]]),
            np.concatenate([none, extras[owners]]),
        )


def spans(firsts: IntArray, ends: IntArray) -> IntArray:
    """All numbers from each of ``firsts`` up to its end.

    >>> spans(np.array([3, 7]), np.array([5, 8])).tolist()
    [3, 4, 7]
    """
    sizes = ends - firsts
    return np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def read_trie(parents: bytes, symbols: bytes, counts: bytes, threshold: int) -> Trie:
    """What the compiled module has grown, without the nodes below the threshold that it came to."""
    kinds: tuple[Any, ...] = (np.int32, np.uint16, np.int32)
    own = [np.frombuffer(data, dtype=kind) for data, kind in zip((parents, symbols, counts), kinds, strict=True)]
    found = Trie(own[0], own[1], own[2].astype(np.int64), np.zeros(len(own[2]), dtype=np.int64))
    return found.pruned(threshold)
