"""What a WHERE clause asks of the positions: the type that ``query/`` makes and ``engine/`` reads.

A :class:`Region` is a tuple of disjoint boxes. A box holds one :class:`Constraint` per constrained column, and a
constraint is a small automaton that reads the column's symbols one position at a time. A set of values on a
one-position column is the smallest such automaton; a range over digits or a pattern over characters are others.
The engine never asks which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from countless.arrays import FloatArray, IntArray


class Constraint(Protocol):
    """An automaton over the positions of one column."""

    def start(self) -> int:
        """The state before any symbol is read."""
        ...

    def weights(self, state: int) -> FloatArray:
        """One weight in [0, 1] per symbol of the next position: 0 forbidden, 1 allowed, between: partly."""
        ...

    def next(self, state: int, symbols: IntArray) -> IntArray:
        """The state after reading each of ``symbols`` in ``state``."""
        ...

    def free(self, state: int) -> bool:
        """Whether nothing further is asked, so that the remaining positions can stay MASKed."""
        ...


@dataclass(frozen=True, eq=False)
class ValueSet:
    """A set of symbols of a one-position column, with a weight each.

    >>> odd = ValueSet(np.array([0.0, 1.0, 0.0, 1.0]))
    >>> odd.weights(odd.start()).tolist(), odd.next(0, np.array([1, 3])).tolist(), odd.free(1)
    ([0.0, 1.0, 0.0, 1.0], [1, 1], True)
    """

    symbol_weights: FloatArray

    def start(self) -> int:
        return 0

    def weights(self, state: int) -> FloatArray:
        return self.symbol_weights

    def next(self, state: int, symbols: IntArray) -> IntArray:
        return np.ones(len(symbols), dtype=np.int64)

    def free(self, state: int) -> bool:
        return state == 1 or bool(np.all(self.symbol_weights == 1.0))


@dataclass(frozen=True)
class Filter:
    """A constraint and the positions that it reads, in the order it reads them."""

    positions: tuple[int, ...]
    constraint: Constraint


@dataclass(frozen=True)
class Box:
    """A conjunction of filters on distinct columns; none at all is the whole table."""

    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class Region:
    """A union of disjoint boxes; no box at all is the empty set.

    ``cover`` lists the possibly overlapping boxes as the clause wrote them: the largest of them is a lower bound
    of the union and their sum an upper one. It is empty when the boxes are the cover themselves.
    """

    boxes: tuple[Box, ...]
    cover: tuple[Box, ...] = ()
