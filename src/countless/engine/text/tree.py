"""Token trees in NumPy: a causal Transformer that evaluates several nodes at a time, layer by layer.

``kernel_c/text.h`` is the same compiled. A node's parent has a smaller number, so nodes can be computed in their order
and find the keys and values of their whole path.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import IntArray, Weights
from countless.cached_property import cached_property
from countless.engine.columns.runtime import softmax
from countless.spec import TextSpec

CHUNK = 256  # nodes that go through the layers together
NOBODY = -1  # the parent of a root


class TextTransformerArrays:
    """The arrays of a text model, and what its trees have in common."""

    def __init__(self, spec: TextSpec, weights: dict[str, Weights], shift: Weights) -> None:
        self.spec = spec
        self.weights = weights
        self._hash_ids = np.array(spec.hash_ids, dtype=np.uint32)
        self._base = PlainTree(self, shift)
        _ = self._base.roots  # computed now, for all that are copied from it

    def tree(self, shifts: Weights | None) -> PlainTree:
        """A tree with roots of each context, which adds its ``shifts`` (contexts, width) to every token.

        If None is given there is one context, in which nothing is known.
        """
        return self._base.copy() if shifts is None else PlainTree(self, shifts)

    def linear(self, name: str, x: Weights) -> Weights:
        found: Weights = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return found

    def norm(self, name: str, x: Weights) -> Weights:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        found: Weights = x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return found

    def embedded(self, tokens: IntArray, positions: IntArray) -> Weights:
        """First vectors of tokens (B, D), each row of which has a path from its last token back."""
        x: Weights = self.weights["embedding"][tokens[:, 0]] + self.weights["positions"][positions]
        hashes = np.full(len(tokens), 2166136261, dtype=np.uint32)
        for length in range(max(self.spec.grams, default=0)):
            token = tokens[:, length] if length < tokens.shape[1] else np.full(len(tokens), self.spec.mask)
            hashes = (hashes ^ self._hash_ids[token]) * np.uint32(16777619)
            if length + 1 in self.spec.grams:
                table = self.weights["grams"][self.spec.grams.index(length + 1)]
                x += table[(hashes >> np.uint32(7)) % np.uint32(self.spec.buckets)]
        return x

    def probabilities(self, x: Weights) -> Weights:
        logits = self.norm("final", x) @ self.weights["embedding"][: self.spec.symbols].T + self.weights["bias"]
        return softmax(logits).astype(np.float32)


class PlainTree:
    """A :class:`~countless.engine.text.Tree` on NumPy; ``shifts`` (contexts, width) go to every token of theirs."""

    def __init__(self, network: TextTransformerArrays, shifts: Weights) -> None:
        spec, each = network.spec, network.spec.length + 1
        self._network, self._shifts = network, shifts
        self._size = len(shifts) * each
        self._room = 2 * self._size
        self._parents = np.full(self._room, NOBODY, dtype=np.int64)
        self._tokens = np.full(self._room, spec.mask, dtype=np.int64)
        self._contexts, self._positions = np.divmod(np.arange(self._room), each)
        # (blocks, keys and values, room, heads, width of a head)
        self._keys = np.empty((spec.blocks, 2, self._room, spec.heads, spec.width // spec.heads), dtype=np.float32)
        self.starts = self._compute(np.arange(0, self._size, each))
        self.starts.setflags(write=False)

    @cached_property
    def roots(self) -> Weights:
        roots = self._compute(np.arange(len(self._shifts) * (self._network.spec.length + 1)))
        roots.setflags(write=False)
        return roots

    def copy(self) -> PlainTree:
        """A tree with the same roots, all of which are computed."""
        made = copy(self)
        made.roots = self.roots
        for name in ("_parents", "_tokens", "_contexts", "_positions", "_keys"):
            setattr(made, name, getattr(self, name).copy())
        return made

    @property
    def size(self) -> int:
        return self._size

    @property
    def positions(self) -> IntArray:
        return self._positions[: self._size].copy()

    @property
    def contexts(self) -> IntArray:
        return self._contexts[: self._size].copy()

    def extend(self, parents: ArrayLike, tokens: ArrayLike) -> Weights:
        return self._append(np.asarray(parents, dtype=np.int64), np.asarray(tokens, dtype=np.int64), None)

    def masked(self, parents: ArrayLike, positions: ArrayLike) -> Weights:
        parents, positions = np.asarray(parents, dtype=np.int64), np.asarray(positions, dtype=np.int64)
        return self._append(parents, np.full(len(parents), self._network.spec.mask), positions)

    def _append(self, parents: IntArray, tokens: IntArray, positions: IntArray | None) -> Weights:
        spec, start, count = self._network.spec, self._size, len(parents)
        if (
            parents.ndim != 1
            or tokens.shape != parents.shape
            or (positions is not None and positions.shape != parents.shape)
        ):
            raise ValueError("every node has one parent, one token and one position")
        if np.any((parents < 0) | (parents >= start + np.arange(count))):
            raise ValueError("a parent is not a node that comes before")
        if np.any((tokens < 0) | (tokens > spec.mask)):
            raise ValueError("a token is neither a symbol nor MASK")
        self._reserve(start + count)
        for node, parent in enumerate(parents.tolist(), start):
            before = self._positions[parent]
            here = before + 1 if positions is None else positions[node - start]
            if not before < here <= spec.length:
                raise ValueError("a position is beyond the model's length, or not after its parent's")
            self._positions[node], self._contexts[node] = here, self._contexts[parent]
        roots = len(self._shifts) * (spec.length + 1)
        if np.any((parents < roots) & (parents % (spec.length + 1) > 0)):
            _ = self.roots  # they are computed when somebody needs them
        self._parents[start : start + count] = parents
        self._tokens[start : start + count] = tokens
        found = self._compute(np.arange(start, start + count))
        self._size += count
        return found

    def _reserve(self, nodes: int) -> None:
        while nodes > self._room:
            self._room *= 2
            for name in ("_parents", "_tokens", "_contexts", "_positions"):
                setattr(self, name, np.resize(getattr(self, name), self._room))
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)], axis=2)

    def _compute(self, nodes: IntArray) -> Weights:
        """The probabilities after these nodes; their keys and values are kept."""
        found = [self._some(nodes[first : first + CHUNK]) for first in range(0, len(nodes), CHUNK)]
        return np.concatenate([np.empty((0, self._network.spec.symbols), dtype=np.float32), *found])

    def _some(self, nodes: IntArray) -> Weights:
        network, spec = self._network, self._network.spec
        path = self._paths(nodes)
        tokens = np.where(path == NOBODY, spec.mask, self._tokens[path])
        x = network.embedded(tokens, self._positions[nodes]) + self._shifts[self._contexts[nodes]]
        for block in range(spec.blocks):
            name = f"blocks.{block}"
            qkv = network.linear(f"{name}.qkv", network.norm(f"{name}.attention_norm", x))
            query, key, value = (part.reshape(len(nodes), spec.heads, -1) for part in np.split(qkv, 3, axis=1))
            self._keys[block, 0, nodes], self._keys[block, 1, nodes] = key, value
            x = x + network.linear(f"{name}.out", self._attended(block, path, query))
            inside = network.linear(f"{name}.up", network.norm(f"{name}.feed_norm", x))
            x = x + network.linear(f"{name}.down", np.maximum(inside, 0))
        return network.probabilities(x)

    def _paths(self, nodes: IntArray) -> IntArray:
        """Each node and its ancestors (B, D), from the node back, and NOBODY before its root."""
        columns = [nodes]
        while True:
            above = np.where(columns[-1] == NOBODY, NOBODY, self._parents[columns[-1]])
            if np.all(above == NOBODY):
                return np.stack(columns, axis=1)
            columns.append(above)

    def _attended(self, block: int, path: IntArray, query: Weights) -> Weights:
        """What each node (B, heads, width of a head) finds along its path, (B, width)."""
        there = np.maximum(path, 0)
        keys, values = self._keys[block, 0, there], self._keys[block, 1, there]  # (B, D, heads, width of a head)
        scores = np.einsum("bhe,bdhe->bhd", query, keys) / np.sqrt(np.float32(query.shape[-1]))
        scores = np.where((path == NOBODY)[:, None, :], -np.inf, scores)
        found: Weights = np.einsum("bhd,bdhe->bhe", softmax(scores).astype(np.float32), values)
        return found.reshape(len(path), -1)
