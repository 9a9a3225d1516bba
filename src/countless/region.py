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

from countless.arrays import BoolArray, FloatArray, IntArray


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


class DigitSet:
    """A set of codes of a column whose code is written in digits, leading digit first.

    The states are the prefixes. A prefix under which every code is allowed is free: in a range, all but two.

    >>> tens = DigitSet(np.arange(25) >= 10, (5, 5))  # codes 10 to 24: leading digits 2, 3 and 4, with any second
    >>> tens.weights(tens.start()).tolist(), tens.free(int(tens.next(0, np.array([3]))[0]))
    ([0.0, 0.0, 1.0, 1.0, 1.0], True)
    """

    def __init__(self, codes: BoolArray, radices: tuple[int, ...]) -> None:
        self._radices = radices
        allowed = np.zeros(int(np.prod(radices)), dtype=bool)
        allowed[: len(codes)] = codes
        ignored = np.arange(len(allowed)) >= len(codes)  # digits that make no code, at the very end
        prefixes = np.cumprod((1, *radices))  # prefixes of each depth
        self._starts = np.cumsum((0, *prefixes))  # first state of each depth
        self._some: list[BoolArray] = [np.asarray(allowed.reshape(count, -1).any(axis=1)) for count in prefixes]
        self._every: list[BoolArray] = [
            np.asarray((allowed | ignored).reshape(count, -1).all(axis=1)) for count in prefixes
        ]

    def start(self) -> int:
        return 0

    def weights(self, state: int) -> FloatArray:
        depth, prefix = self._place(state)
        radix = self._radices[depth]
        return self._some[depth + 1][prefix * radix : (prefix + 1) * radix].astype(np.float64)

    def next(self, state: int, symbols: IntArray) -> IntArray:
        depth, prefix = self._place(state)
        following: IntArray = self._starts[depth + 1] + prefix * self._radices[depth] + symbols
        return following

    def free(self, state: int) -> bool:
        depth, prefix = self._place(state)
        return bool(self._every[depth][prefix])

    def _place(self, state: int) -> tuple[int, int]:
        depth = int(np.searchsorted(self._starts, state, side="right")) - 1
        return depth, state - int(self._starts[depth])


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
