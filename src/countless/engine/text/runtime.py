"""The runtime of a text model: a causal Transformer over characters, evaluated on trees of tokens.

A token attends to its ancestors, which is all of its string that comes before it. Nothing a token has computed changes
when others follow, so each keeps its keys and values, and strings that begin alike share what they have in common.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countless.arrays import FloatArray, IntArray, Weights
from countless.engine.checked import checked
from countless.engine.kernel import compiled
from countless.engine.text.kernel import TextKernel
from countless.engine.text.tree import Network
from countless.spec import TextSpec


class Tree(Protocol):
    """Strings that are being read, as a tree of tokens. For one thread at a time.

    Nodes have numbers in the order they come. The first are the *roots*: node ``m`` is MASK at position ``m``, which
    stands for ``m`` symbols that are not known.
    """

    @property
    def roots(self) -> Weights:
        """Probabilities (length + 1, symbols) of the symbol after each root. Not to be written to."""
        ...

    @property
    def size(self) -> int:
        """How many nodes there are, which is the number of the next."""
        ...

    @property
    def positions(self) -> IntArray:
        """The position of each node."""
        ...

    def extend(self, parents: ArrayLike, tokens: ArrayLike) -> Weights:
        """Append a node for each token, right after its parent: probabilities (B, symbols) of the symbol after it.

        A parent may be a node of the same call that comes before, so that a known string is read in one call.
        """
        ...

    def masked(self, parents: ArrayLike, positions: ArrayLike) -> Weights:
        """Append MASK at any later position than the parent's: the symbols between the two are not known."""
        ...


class TextRuntime:
    """A text model's arrays, ready to be asked. Safe to share by threads."""

    def __init__(self, spec: TextSpec, arrays: dict[str, NDArray[Any]]) -> None:
        self.spec = spec
        weights = checked(arrays, shapes(spec))
        self._context = weights.get("context.weight", np.empty((spec.width, 0), dtype=np.float32))
        module = compiled()
        self._trees = Network(spec, weights) if module is None else TextKernel(module, spec, weights)

    @property
    def compiled(self) -> bool:
        """Whether the compiled module does the work, not NumPy."""
        return isinstance(self._trees, TextKernel)

    def tree(self, context: FloatArray | None = None) -> Tree:
        """A tree that has nothing but its roots; ``context`` (spec.context) is for the models that take one."""
        size = 0 if context is None else context.size
        if size != self.spec.context:
            raise ValueError(f"the model takes a context of {self.spec.context} numbers, not {size}")
        shift: Weights | None = None
        if context is not None:
            shift = (self._context @ context).astype(np.float32)
        return self._trees.tree(shift)


def shapes(spec: TextSpec) -> dict[str, tuple[int, ...]]:
    """The name and shape of every array of a text model."""
    width = spec.width
    found: dict[str, tuple[int, ...]] = {
        "embedding": (spec.symbols + 1, width),
        "positions": (spec.length + 1, width),
        "grams": (len(spec.grams), spec.buckets, width),
        "bias": (spec.symbols,),
        "final.weight": (width,),
        "final.bias": (width,),
    }
    if spec.context:
        found["context.weight"] = (width, spec.context)
    for block in range(spec.blocks):
        for name, shape in (
            ("attention_norm", (width,)),
            ("qkv", (3 * width, width)),
            ("out", (width, width)),
            ("feed_norm", (width,)),
            ("up", (spec.inner, width)),
            ("down", (width, spec.inner)),
        ):
            found[f"blocks.{block}.{name}.weight"] = shape
            found[f"blocks.{block}.{name}.bias"] = shape[:1]
    return found
