"""Tries with a node for each substring, used while substrings are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.cached_property import cached_property


class CompressedTrie(NamedTuple):
    """A trie in which a run without branches is one node: see :class:`.Substrings`."""

    levels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    labels: NDArray[np.uint16]
    counts: IntArray
    extras: IntArray


@dataclass(frozen=True, eq=False)
class Trie:
    """A trie of substrings. Node 0 is the empty one; the others come after their parents and have one more symbol.

    ``counts`` has the number of rows that contain each, and ``extras`` how many more do if case is ignored.
    """

    parents: NDArray[np.int32]
    symbols: NDArray[np.uint16]
    counts: IntArray
    extras: IntArray

    @cached_property
    def levels(self) -> list[IntArray]:
        """The nodes of each length."""
        levels = [np.zeros(1, dtype=np.int64)]
        order = np.argsort(self.parents, kind="stable")
        order = order[order > 0]
        parents = self.parents[order]
        while len(levels[-1]):
            firsts, ends = np.searchsorted(parents, levels[-1]), np.searchsorted(parents, levels[-1], side="right")
            levels.append(order[spans(firsts, ends)])
        return levels[:-1]

    def pruned(self, threshold: int) -> Trie:
        """The trie of the substrings that at least ``threshold`` rows contain, if case is ignored."""
        is_kept: BoolArray = self.counts + self.extras >= threshold
        is_kept[0] = True
        new_nodes = np.cumsum(is_kept) - 1
        parents = new_nodes[self.parents[is_kept]].astype(np.int32)
        return Trie(parents, self.symbols[is_kept], self.counts[is_kept], self.extras[is_kept])

    def compressed(self) -> CompressedTrie:
        """The trie without nodes that have a single child with the same counts, in depth-first order."""
        by_length, parents = self.levels, self.parents
        is_kept = self._is_explicit()
        ranks, lengths, depths = (np.zeros(len(parents), dtype=np.int64) for _ in range(3))
        before = self._kept_before(is_kept)
        for nodes in by_length[1:]:
            above = parents[nodes]
            ranks[nodes] = ranks[above] + is_kept[above] + before[nodes]
            lengths[nodes] = np.where(is_kept[above], 0, lengths[above]) + 1
            depths[nodes] = depths[above] + is_kept[above]
        kept = np.flatnonzero(is_kept)[1:]
        kept = kept[np.argsort(ranks[kept])]
        starts = np.concatenate([[0], np.cumsum(lengths[kept])])
        labels = np.zeros(starts[-1], dtype=np.uint16)
        positions, nodes = starts[1:].copy(), kept.copy()  # labels are written from their ends
        while len(nodes):
            positions -= 1
            labels[positions] = self.symbols[nodes]
            has_more = lengths[nodes] > 1
            positions, nodes = positions[has_more], parents[nodes[has_more]].astype(np.int64)
        return CompressedTrie(depths[kept].astype(np.uint8), starts, labels, self.counts[kept], self.extras[kept])

    def _kept_before(self, is_kept: BoolArray) -> IntArray:
        """For each node the number of kept nodes in the subtrees of its earlier siblings."""
        sizes = is_kept.astype(np.int64)
        for nodes in self.levels[:0:-1]:
            np.add.at(sizes, self.parents[nodes], sizes[nodes])
        order = np.lexsort((self.symbols, self.parents))
        order = order[order > 0]
        sums = np.cumsum(sizes[order]) - sizes[order]
        is_first = np.diff(self.parents[order], prepend=-1) != 0
        before = np.zeros(len(self.parents), dtype=np.int64)
        before[order] = sums - sums[is_first][np.cumsum(is_first) - 1] if len(order) else sums
        return before

    def _is_explicit(self) -> BoolArray:
        """Whether each node is one of the compressed trie: not if it has a single child with the same counts."""
        children = np.bincount(self.parents[1:], minlength=len(self.parents))
        has_same_counts = (self.counts == self.counts[self.parents]) & (self.extras == self.extras[self.parents])
        is_explicit = np.ones(len(self.parents), dtype=bool)
        is_explicit[self.parents[has_same_counts & (children[self.parents] == 1)]] = False
        is_explicit[0] = True
        return is_explicit

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
        """The trie of a compressed one, with nodes in the same order."""
        owners = np.repeat(np.arange(len(levels)), np.diff(starts))
        parents = np.arange(len(labels), dtype=np.int32)  # the node before, except for the first of a label
        last = np.zeros(int(levels.max(initial=0)) + 1, dtype=np.int32)
        ends = starts[1:].tolist()
        for node, (level, first) in enumerate(zip(levels.tolist(), starts[:-1].tolist(), strict=True)):
            parents[first] = last[level - 1]
            last[level] = ends[node]
        root = np.zeros(1, dtype=np.int64)
        return cls(
            np.concatenate([root.astype(np.int32), parents]),
            np.concatenate([root.astype(np.uint16), labels]),
            np.concatenate([root + rows, counts[owners]]),
            np.concatenate([root, extras[owners]]),
        )


def spans(firsts: IntArray, ends: IntArray) -> IntArray:
    """All numbers from each of ``firsts`` up to, not including, its end.

    >>> spans(np.array([3, 7]), np.array([5, 8])).tolist()
    [3, 4, 7]
    """
    sizes = ends - firsts
    return np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def read_trie(parents: bytes, symbols: bytes, counts: bytes, threshold: int) -> Trie:
    """The trie that the compiled module has grown, without the nodes below the threshold."""
    node_counts = np.frombuffer(counts, dtype=np.int32).astype(np.int64)
    node_parents, node_symbols = np.frombuffer(parents, dtype=np.int32), np.frombuffer(symbols, dtype=np.uint16)
    return Trie(node_parents, node_symbols, node_counts, np.zeros_like(node_counts)).pruned(threshold)
