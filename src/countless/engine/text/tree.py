"""Trees of tokens in NumPy: a causal Transformer, evaluated some nodes at a time and layer by layer.

``kernel_c/text.h`` is the same compiled. A node's parent has a smaller number, so nodes can be computed in their order
and find the keys and values of their whole path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from countless.arrays import IntArray, Weights
from countless.engine.runtime import softmax
from countless.spec import TextSpec

CHUNK = 256  # nodes that go through the layers together
NOBODY = -1  # the parent of a root


class Network:
    """The arrays of a text model, and what its trees have in common."""

    def __init__(self, spec: TextSpec, weights: dict[str, Weights]) -> None:
        self.spec = spec
        self.weights = weights
        self.base: PlainTree | None = None
        if not spec.context:
            self.base = PlainTree(self, None)

    def tree(self, shift: Weights | None) -> PlainTree:
        """A tree with its roots; ``shift`` (width) is what a context adds to every token."""
        return PlainTree(self, shift)

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
            hashes = (hashes ^ token.astype(np.uint32)) * np.uint32(16777619)
            if length + 1 in self.spec.grams:
                table = self.weights["grams"][self.spec.grams.index(length + 1)]
                x += table[(hashes >> np.uint32(7)) % np.uint32(self.spec.buckets)]
        return x

    def probabilities(self, x: Weights) -> Weights:
        logits = self.norm("final", x) @ self.weights["embedding"][: self.spec.symbols].T + self.weights["bias"]
        return softmax(logits).astype(np.float32)


class PlainTree:
    """A :class:`~countless.engine.text.Tree` on NumPy; ``shift`` (width) is what a context adds to every token."""

    def __init__(self, network: Network, shift: Weights | None) -> None:
        spec = network.spec
        self._network, self._shift = network, np.float32(0) if shift is None else shift
        self._size, self._room = spec.length + 1, 2 * (spec.length + 1)
        self._parents = np.full(self._room, NOBODY, dtype=np.int64)
        self._tokens = np.full(self._room, spec.mask, dtype=np.int64)
        self._positions = np.arange(self._room, dtype=np.int64)
        # (blocks, keys and values, room, heads, width of a head)
        self._keys = np.empty((spec.blocks, 2, self._room, spec.heads, spec.width // spec.heads), dtype=np.float32)
        if network.base is None:
            self.roots = self._compute(0, self._size)
            self.roots.setflags(write=False)
        else:
            self.roots = network.base.roots
            self._keys[:, :, : self._size] = network.base._keys[:, :, : self._size]

    @property
    def size(self) -> int:
        return self._size

    @property
    def positions(self) -> IntArray:
        return self._positions[: self._size].copy()

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
            self._positions[node] = here
        self._parents[start : start + count] = parents
        self._tokens[start : start + count] = tokens
        found = self._compute(start, count)
        self._size += count
        return found

    def _reserve(self, nodes: int) -> None:
        while nodes > self._room:
            self._room *= 2
            for name in ("_parents", "_tokens", "_positions"):
                setattr(self, name, np.resize(getattr(self, name), self._room))
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)], axis=2)

    def _compute(self, first: int, count: int) -> Weights:
        """The probabilities after ``count`` nodes from ``first`` on; their keys and values are kept."""
        starts = range(first, first + count, CHUNK)
        found = [self._some(np.arange(start, min(start + CHUNK, first + count))) for start in starts]
        return np.concatenate([np.empty((0, self._network.spec.symbols), dtype=np.float32), *found])

    def _some(self, nodes: IntArray) -> Weights:
        network, spec = self._network, self._network.spec
        path = self._paths(nodes)
        tokens = np.where(path == NOBODY, spec.mask, self._tokens[path])
        x = network.embedded(tokens, self._positions[nodes]) + self._shift
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
