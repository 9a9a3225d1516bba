"""The runtime of a text model: a causal Transformer over characters, evaluated on trees of tokens.

A token attends to its ancestors, the part of its string before it. Later tokens change nothing for earlier ones, so
each token caches its keys and values, and strings with an equal prefix share them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countless.arrays import IntArray, Weights
from countless.engine.checked_arrays import checked
from countless.engine.columns.kernel import compiled
from countless.engine.text.kernel import TextKernel
from countless.engine.text.tree import TextTransformerArrays
from countless.spec import TextSpec


class Tree(Protocol):
    """The strings that are being read, as a tree of tokens. Not thread-safe.

    Nodes are numbered in the order of their creation. The first are the *roots*: node ``m`` is MASK at position ``m``,
    which stands for ``m`` unknown symbols. A *context* has the known symbols of a row. If a tree has several contexts,
    each has roots of its own, ``context * (length + 1) + m``, and every other node has its parent's context.
    """

    @property
    def starts(self) -> Weights:
        """Probabilities (contexts, symbols) of the first symbol of strings, in each context. Read-only."""
        ...

    @property
    def roots(self) -> Weights:
        """Probabilities (contexts * (length + 1), symbols) of the symbol after each root. Read-only.

        They are computed on first access, or when one of the roots is first extended.
        """
        ...

    @property
    def size(self) -> int:
        """The number of nodes, which is the number of the next node."""
        ...

    @property
    def positions(self) -> IntArray:
        """The position of each node."""
        ...

    @property
    def contexts(self) -> IntArray:
        """The context of each node."""
        ...

    def extend(self, parents: ArrayLike, tokens: ArrayLike) -> Weights:
        """Append a node for each token right after its parent. Returns probabilities (B, symbols) of the next symbol.

        A parent may be an earlier node of the same call, so that a known string is read in one call.
        """
        ...

    def masked(self, parents: ArrayLike, positions: ArrayLike) -> Weights:
        """Append MASK at any position after the parent's: the symbols between the two are unknown."""
        ...


class TextRuntime:
    """A text model, loaded from its arrays. Threads may share it."""

    def __init__(self, spec: TextSpec, arrays: dict[str, NDArray[Any]]) -> None:
        self.spec = spec
        weights = checked(arrays, shapes(spec))
        self._row = RowContextArrays(spec, weights) if spec.context else None
        no_shift = np.zeros((1, spec.width), dtype=np.float32)
        shift = no_shift if self._row is None else self._row.shifts(np.array([spec.context]))
        module = compiled()
        self._trees = (
            TextTransformerArrays(spec, weights, shift) if module is None else TextKernel(module, spec, weights, shift)
        )

    @property
    def compiled(self) -> bool:
        """Whether the trees are computed by the compiled module, not by NumPy."""
        return isinstance(self._trees, TextKernel)

    def tree(self, contexts: ArrayLike | None = None) -> Tree:
        """A tree of roots only.

        ``contexts`` (contexts, positions of the row) have the known symbols of rows, and MASK (``spec.context[p]``)
        elsewhere. Without this argument there is one context, in which nothing is known.
        """
        if contexts is None:
            return self._trees.tree(None)
        if self._row is None:
            raise ValueError("the model takes no context")
        return self._trees.tree(self._row.shifts(contexts))


class RowContextArrays:
    """Turns the known symbols of a row into a vector that is added to every token: the *shift*.

    Every symbol of every position has an embedding, MASK too. Their sum goes through one hidden layer, and also past
    it.
    """

    def __init__(self, spec: TextSpec, weights: dict[str, Weights]) -> None:
        self._sizes = np.array(spec.context)
        self._first = np.cumsum(self._sizes + 1) - (self._sizes + 1)  # the embedding of each position's symbol 0
        self._embedding, self._bias = weights["context.embedding"], weights["context.bias"]
        self._out, self._direct = weights["context.out.weight"], weights["context.direct.weight"]

    def shifts(self, contexts: ArrayLike) -> Weights:
        """The shift (contexts, width) of each context. It is bitwise independent of the other contexts."""
        symbols = np.asarray(contexts)
        if (
            symbols.ndim != 2
            or symbols.shape[1] != len(self._sizes)
            or not len(symbols)
            or symbols.dtype.kind not in "iu"
        ):
            raise ValueError(f"a context has one symbol for each of the row's {len(self._sizes)} positions")
        if np.any((symbols < 0) | (symbols > self._sizes)):
            raise ValueError("a context has a symbol that is neither one of its position nor MASK")
        shifts = np.empty((len(symbols), len(self._out)), dtype=np.float32)
        for index, row in enumerate(symbols.astype(np.int64) + self._first):
            units = self._embedding[row].sum(axis=0) + self._bias
            shifts[index] = self._out @ np.maximum(units, 0) + self._direct @ units
        return shifts


def shapes(spec: TextSpec) -> dict[str, tuple[int, ...]]:
    """The name and shape of every array of a text model."""
    width = spec.width
    shape_of: dict[str, tuple[int, ...]] = {
        "embedding": (spec.symbols + 1, width),
        "positions": (spec.length + 1, width),
        "grams": (len(spec.grams), spec.buckets, width),
        "bias": (spec.symbols,),
        "final.weight": (width,),
        "final.bias": (width,),
    }
    if spec.context:
        shape_of["context.embedding"] = (sum(spec.context) + len(spec.context), spec.context_width)
        shape_of["context.bias"] = (spec.context_width,)
        shape_of["context.out.weight"] = (width, spec.context_width)
        shape_of["context.direct.weight"] = (width, spec.context_width)
    for block in range(spec.blocks):
        for name, shape in (
            ("attention_norm", (width,)),
            ("qkv", (3 * width, width)),
            ("out", (width, width)),
            ("feed_norm", (width,)),
            ("up", (spec.inner, width)),
            ("down", (width, spec.inner)),
        ):
            shape_of[f"blocks.{block}.{name}.weight"] = shape
            shape_of[f"blocks.{block}.{name}.bias"] = shape[:1]
    return shape_of
