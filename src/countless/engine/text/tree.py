"""Token trees in NumPy: a causal Transformer that evaluates several nodes at a time, layer by layer.

``kernel_c/text.h`` is the compiled twin. A parent has a smaller number than its children, so that nodes are computed in
order and find the keys and values of their whole path.
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
NO_PARENT = -1


class TextTransformerArrays:
    """The arrays of a text model, shared by its trees."""

    def __init__(self, spec: TextSpec, weights: dict[str, Weights], shift: Weights) -> None:
        self.spec = spec
        self.weights = weights
        self._hash_ids = np.array(spec.hash_ids, dtype=np.uint32)
        self._base = PlainTree(self, shift)
        _ = self._base.roots  # computed once, before the tree is copied

    def tree(self, shifts: Weights | None) -> PlainTree:
        """A tree with roots for each context, whose shift (of ``shifts``: contexts, width) is added to every token.

        With None there is one context, in which nothing is known.
        """
        return self._base.copy() if shifts is None else PlainTree(self, shifts)

    def linear(self, name: str, x: Weights) -> Weights:
        out: Weights = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return out

    def norm(self, name: str, x: Weights) -> Weights:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        out: Weights = x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return out

    def embedded(self, tokens: IntArray, positions: IntArray) -> Weights:
        """Input vectors of tokens. Each row of ``tokens`` (B, D) is a path, from the last token backwards."""
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
    """A :class:`~countless.engine.text.Tree` on NumPy. ``shifts`` (contexts, width) are added to all tokens."""

    def __init__(self, network: TextTransformerArrays, shifts: Weights) -> None:
        spec, roots_per_context = network.spec, network.spec.length + 1
        self._network, self._shifts = network, shifts
        self._size = len(shifts) * roots_per_context
        self._room = 2 * self._size
        self._parents = np.full(self._room, NO_PARENT, dtype=np.int64)
        self._tokens = np.full(self._room, spec.mask, dtype=np.int64)
        self._contexts, self._positions = np.divmod(np.arange(self._room), roots_per_context)
        # (blocks, keys and values, room, heads, width of a head)
        self._keys = np.empty((spec.blocks, 2, self._room, spec.heads, spec.width // spec.heads), dtype=np.float32)
        self.starts = self._compute(np.arange(0, self._size, roots_per_context))
        self.starts.setflags(write=False)

    @cached_property
    def roots(self) -> Weights:
        roots = self._compute(np.arange(len(self._shifts) * (self._network.spec.length + 1)))
        roots.setflags(write=False)
        return roots

    def copy(self) -> PlainTree:
        """A tree with the same roots, already computed."""
        tree = copy(self)
        tree.roots = self.roots
        for name in ("_parents", "_tokens", "_contexts", "_positions", "_keys"):
            setattr(tree, name, getattr(self, name).copy())
        return tree

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
            parent_position = self._positions[parent]
            position = parent_position + 1 if positions is None else positions[node - start]
            if not parent_position < position <= spec.length:
                raise ValueError("a position is beyond the model's length, or not after its parent's")
            self._positions[node], self._contexts[node] = position, self._contexts[parent]
        root_count = len(self._shifts) * (spec.length + 1)
        if np.any((parents < root_count) & (parents % (spec.length + 1) > 0)):
            _ = self.roots  # computes the roots, which are needed now
        self._parents[start : start + count] = parents
        self._tokens[start : start + count] = tokens
        probabilities = self._compute(np.arange(start, start + count))
        self._size += count
        return probabilities

    def _reserve(self, nodes: int) -> None:
        while nodes > self._room:
            self._room *= 2
            for name in ("_parents", "_tokens", "_contexts", "_positions"):
                setattr(self, name, np.resize(getattr(self, name), self._room))
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)], axis=2)

    def _compute(self, nodes: IntArray) -> Weights:
        """The probabilities after these nodes. Their keys and values are stored."""
        chunks = [self._compute_chunk(nodes[start : start + CHUNK]) for start in range(0, len(nodes), CHUNK)]
        return np.concatenate([np.empty((0, self._network.spec.symbols), dtype=np.float32), *chunks])

    def _compute_chunk(self, nodes: IntArray) -> Weights:
        network, spec = self._network, self._network.spec
        path = self._paths(nodes)
        tokens = np.where(path == NO_PARENT, spec.mask, self._tokens[path])
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
        """Each node and its ancestors (B, D), from the node backwards, padded with NO_PARENT."""
        columns = [nodes]
        while True:
            above = np.where(columns[-1] == NO_PARENT, NO_PARENT, self._parents[columns[-1]])
            if np.all(above == NO_PARENT):
                return np.stack(columns, axis=1)
            columns.append(above)

    def _attended(self, block: int, path: IntArray, query: Weights) -> Weights:
        """Attention of each node's query (B, heads, width of a head) over its path: (B, width)."""
        nodes = np.maximum(path, 0)
        keys, values = self._keys[block, 0, nodes], self._keys[block, 1, nodes]  # (B, D, heads, width of a head)
        scores = np.einsum("bhe,bdhe->bhd", query, keys) / np.sqrt(np.float32(query.shape[-1]))
        scores = np.where((path == NO_PARENT)[:, None, :], -np.inf, scores)
        attended: Weights = np.einsum("bhd,bdhe->bhe", softmax(scores).astype(np.float32), values)
        return attended.reshape(len(path), -1)
