"""The runtime protocol: the methods of a model that sampling methods call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Answer, Effort, PartDensity, Trace, Traced
from countless.region import Box

Logits = NDArray[np.floating[Any]]
State = TypeVar("State")


class ReadyBoxes(Protocol):
    """Boxes that are prepared for walks by one model."""

    def walk(self, budget: int, power: float, offsets: FloatArray) -> list[Answer]:
        """What :func:`countless.engine.columns.particles.particles` answers for each box."""
        ...


class CompiledWalk(Protocol):
    """The particle walk of one model in machine code."""

    def plan(self, boxes: Sequence[Box], hinted: bool = False) -> ReadyBoxes:
        """The boxes, prepared for walks; if ``hinted``, with their hints."""
        ...

    def ask(
        self, question: object, star: tuple[tuple[int, ...], float] | None, effort: Effort, rare: float
    ) -> tuple[Answer, Sequence[PartDensity]]:
        """The answer of filters with pair counts. Below ``rare`` rows it comes with the densities of its parts.

        A ``star`` of filters, whose density is known, is one of them.
        """
        ...

    def trace(self, request: Trace, budget: int, offsets: FloatArray) -> Traced:
        """The rows that :func:`countless.engine.columns.trace.trace` returns."""
        ...


class Runtime(Protocol[State]):
    """A trained autoregressive model over positions, each with ``sizes[p]`` symbols and a MASK token.

    Symbol ``sizes[p]`` *is* the MASK token of position ``p``. Two ways to evaluate, which must agree:
    :meth:`conditional` is the plain forward pass and the definition; :meth:`start`, :meth:`logits` and
    :meth:`advance` walk the positions in the model's order and reuse the activations of earlier positions.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """Symbols per position."""
        ...

    @property
    def order(self) -> tuple[int, ...]:
        """The position at each step of the autoregressive order."""
        ...

    @property
    def kernel(self) -> CompiledWalk | None:
        """The compiled particle walk of this model, if there is one."""
        ...

    def conditional(self, codes: IntArray, position: int) -> Logits:
        """Logits (S, size) of ``position`` for full rows of symbols (S, positions), by a whole forward pass."""
        ...

    def start(self) -> State:
        """A single particle in which every position is MASK."""
        ...

    def logits(self, state: State, position: int) -> Logits:
        """Logits (K, size) of ``position``, which comes after every position advanced so far."""
        ...

    def advance(self, state: State, parents: IntArray, position: int, symbols: IntArray) -> State:
        """New particles: particle ``i`` is particle ``parents[i]`` with ``symbols[i]`` at ``position``.

        Skipped positions stay MASK.
        """
        ...

    def follow(self, state: State, position: int, symbols: IntArray) -> State:
        """The same particles, each with its symbol at ``position``. The old state must not be used again."""
        ...


def softmax(logits: Logits) -> FloatArray:
    """Probabilities along the last axis, in float64."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted
