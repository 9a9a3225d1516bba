"""The simplest runtime: it stores whole rows of symbols and runs a full forward pass each time."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from countless.arrays import IntArray
from countless.engine.columns.runtime import Logits


class RowsRuntime(ABC):
    """A :class:`~countless.engine.columns.runtime.Runtime` for a model that implements only :meth:`conditional`.

    It caches no activations, so it is slow; but it is correct, and enough to try a new kind of model.
    """

    def __init__(self, sizes: tuple[int, ...], order: tuple[int, ...]) -> None:
        self._sizes, self._order = sizes, order

    @property
    def sizes(self) -> tuple[int, ...]:
        """Symbols per position."""
        return self._sizes

    @property
    def order(self) -> tuple[int, ...]:
        """The position at each step."""
        return self._order

    @property
    def kernel(self) -> None:
        """None: there is no compiled walk."""
        return

    @abstractmethod
    def conditional(self, codes: IntArray, position: int) -> Logits:
        """Logits (S, size) of ``position`` for rows of symbols (S, positions). Only earlier positions count."""

    def start(self) -> IntArray:
        """A single row in which every position is MASK."""
        return np.array([self._sizes])

    def logits(self, state: IntArray, position: int) -> Logits:
        """Logits (K, size) of ``position``."""
        return self.conditional(state, position)

    def advance(self, state: IntArray, parents: IntArray, position: int, symbols: IntArray) -> IntArray:
        """Row ``i`` is row ``parents[i]`` with ``symbols[i]`` at ``position``."""
        rows: IntArray = state[parents]
        return self.follow(rows, position, symbols)

    def follow(self, state: IntArray, position: int, symbols: IntArray) -> IntArray:
        """The same rows, each with its symbol at ``position``."""
        state[:, position] = symbols
        return state
