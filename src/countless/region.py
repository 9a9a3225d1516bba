"""The Region of a WHERE clause: boxes of allowed symbols, which ``query/`` makes and ``engine/`` reads.

A :class:`Region` is a tuple of disjoint boxes. A box holds one :class:`Constraint` per constrained column, and a
constraint is a small automaton that reads the column's symbols one position at a time. A set of values on a
one-position column is the smallest such automaton; a range over digits or a pattern over characters are others.
The engine never asks which: it sees tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.automata.language import Language
from countless.cached_property import cached_property
from countless.record import record

FREE = 0  # the state in which nothing further is asked, so that the remaining positions can stay MASKed
START = 1  # the state before any symbol is read, unless everything is allowed


@dataclass(frozen=True, eq=False)
class Transitions:
    """How an automaton reads one position. Both arrays have a row per state and a column per symbol, MASK last.

    ``weights`` are in [0, 1]: 0 forbidden, 1 allowed, between: partly. A state other than FREE reads a symbol; FREE
    reads only MASK, and stays FREE. ``next`` is the state after the symbol.
    """

    weights: FloatArray
    next: IntArray

    @classmethod
    def of(cls, weights: NDArray[Any], following: NDArray[Any] | int) -> Transitions:
        """The tables of the states from START on, completed with FREE and MASK."""
        states, size = weights.shape
        whole = np.zeros((states + 1, size + 1))
        whole[START:, :size] = weights
        whole[FREE, size] = 1.0
        after = np.zeros((states + 1, size + 1), dtype=np.int64)
        after[START:, :size] = following
        return cls(whole, after)


class Constraint(Protocol):
    """An automaton over the positions of one column, made from a weight for each of its codes."""

    @property
    def weights(self) -> NDArray[Any]:
        """The weight of every code: 0 forbidden, 1 allowed, between: partly."""
        ...

    @property
    def radices(self) -> tuple[int, ...]:
        """How many symbols each of its positions has."""
        ...

    @property
    def listed(self) -> bool:
        """Whether each code matters on its own, so that every position is read even where all codes are allowed."""
        ...

    @property
    def start(self) -> int:
        """The state before any symbol is read; FREE if nothing is asked at all."""
        ...

    @property
    def derived(self) -> dict[Any, Any]:
        """What others derived from it and keep with it, by who did."""
        ...

    @property
    def single(self) -> bool:
        """Whether it allows one symbol at its first position."""
        ...

    @property
    def transitions(self) -> tuple[Transitions, ...]:
        """How each position in turn is read: made when it is first asked for, since most questions do without."""
        ...


def flat_weights(constraint: Constraint) -> NDArray[Any]:
    """The weights of a constraint as compiled code reads them: in one piece, truth values or doubles."""
    weights = constraint.weights
    if weights.dtype.char not in "?d":
        weights = weights.astype(np.float64)
    return weights if weights.flags.c_contiguous else np.ascontiguousarray(weights)


class ValueSet:
    """A set of symbols of a one-position column, with a weight each.

    If ``listed``, each symbol matters on its own, so that the position is read even where all are allowed. ``allowed``
    is how many symbols have a weight, if that is known: some, but not all.

    >>> odd = ValueSet(np.array([0.0, 1.0, 0.0, 1.0]))
    >>> odd.transitions[0].weights[odd.start].tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, weights: NDArray[Any], listed: bool = False, allowed: int | None = None) -> None:
        self.weights, self.listed, self._allowed = weights, listed, allowed
        self.derived: dict[Any, Any] = {}
        self.start = START if listed or allowed or not _allows_all(weights) else FREE

    @property
    def radices(self) -> tuple[int, ...]:
        """How many symbols the position has."""
        return (len(self.weights),)

    @property
    def single(self) -> bool:
        """Whether it allows one symbol."""
        if self._allowed is None:
            self._allowed = int(np.count_nonzero(self.weights))
        return self._allowed == 1

    @cached_property
    def transitions(self) -> tuple[Transitions, ...]:
        """How the position is read."""
        size = len(self.weights)
        weights = np.zeros((2, size + 1))
        weights[START, :size] = self.weights
        weights[FREE, size] = 1.0
        return (Transitions(weights, _all_free(size)),)


def _allows_all(weights: NDArray[Any]) -> bool:
    """Whether every weight is 1; nearly always the first or the last is not."""
    return bool(weights[0] == 1 and weights[-1] == 1 and weights.min() == 1)


@lru_cache(maxsize=1024)
def _all_free(size: int) -> IntArray:
    """The states after each symbol of a column's only position."""
    after = np.zeros((2, size + 1), dtype=np.int64)
    after.setflags(write=False)
    return after


class DigitSet:
    """A set of codes, with a weight each, of a column whose code is written in digits, leading digit first.

    The states are the prefixes that leave something to ask. A prefix under which every code is allowed is FREE: in a
    range, all but two. If ``listed``, each code matters on its own, and none is.

    >>> tens = DigitSet(np.arange(25) >= 12, (5, 5))  # leading digits 3 and 4 with any second, 2 with some
    >>> tens.transitions[0].weights[tens.start].tolist(), tens.transitions[0].next[tens.start].tolist()
    ([0.0, 0.0, 1.0, 1.0, 1.0, 0.0], [0, 0, 1, 0, 0, 0])
    >>> tens.transitions[1].weights[1].tolist()
    [0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, weights: NDArray[Any], radices: tuple[int, ...], listed: bool = False) -> None:
        self.weights = weights
        self.start = START if listed or not _allows_all(weights) else FREE
        self.radices, self.listed = radices, listed
        self.derived: dict[Any, Any] = {}

    @cached_property
    def single(self) -> bool:
        """Whether it allows one leading digit."""
        inside = np.flatnonzero(self.weights)
        below = math.prod(self.radices[1:])
        return bool(len(inside) and inside[0] // below == inside[-1] // below)

    @property
    def is_tabulated(self) -> bool:
        """Whether its transitions are made."""
        return "transitions" in self.__dict__

    def adopt(self, tables: tuple[Transitions, ...]) -> None:
        """Take transitions that were made in compiled code."""
        self.__dict__["transitions"] = tables

    @cached_property
    def transitions(self) -> tuple[Transitions, ...]:
        """How each digit in turn is read."""
        weights, radices = self.weights, self.radices
        leaves = np.zeros(math.prod(radices))
        leaves[: len(weights)] = weights
        whole = leaves == 1
        whole[len(weights) :] = True  # digits that make no code, at the very end
        whole &= not self.listed
        tables: list[Transitions] = []
        some: FloatArray = leaves  # weight of each prefix of the depth below: 1 if any code under it is allowed
        following: IntArray = np.full(len(leaves), FREE)
        for radix in reversed(radices):
            every: BoolArray = whole.reshape(-1, radix).all(axis=1)
            any_code: BoolArray = np.any((some > 0).reshape(-1, radix), axis=1)
            asked = ~every & any_code
            if len(every) == 1:  # the empty prefix always has a state, so that there is one to start in
                asked = np.array([True])
            tables.append(Transitions.of(some.reshape(-1, radix)[asked], following.reshape(-1, radix)[asked]))
            some = any_code.astype(np.float64)
            following = np.where(asked, START - 1 + np.cumsum(asked), FREE)
            whole = every
        return tuple(reversed(tables))


@record(eq=True)
class Filter:
    """A constraint and the positions that it reads, in the order it reads them.

    ``seen`` says which values of the evidence rows satisfy it, where these are not the codes of the constraint. At
    ``most`` so many rows satisfy it, if its column is unique and only so many values can.
    """

    positions: tuple[int, ...]
    constraint: Constraint
    seen: BoolArray | None = field(default=None, compare=False)
    most: int | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class TextFilter:
    """What is asked of the text column at ``column`` among the table's text columns; ``seen`` as of a filter."""

    column: int
    language: Language
    seen: BoolArray | None = None

    def __and__(self, other: TextFilter) -> TextFilter:
        seen = None if self.seen is None or other.seen is None else self.seen & other.seen
        return TextFilter(self.column, self.language & other.language, seen)

    def any(self) -> bool:
        """Whether there can be a string in it."""
        return (self.seen is not None and bool(self.seen.any())) or self.language.any()


class Hints(Protocol):
    """What is known of a box besides its filters: where among the values of one the others hold."""

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """For each code of the filter at ``index``, about how often the ``later`` filters hold too; None if unknown."""
        ...


@record(eq=True)
class Box:
    """A conjunction of filters on distinct columns; none at all is the whole table.

    ``hints`` show a sampler where to look, and do not change exact answers.
    """

    filters: tuple[Filter, ...] = ()
    texts: tuple[TextFilter, ...] = ()
    hints: Hints | None = field(default=None, compare=False)


@record(eq=True)
class Region:
    """A union of disjoint boxes; no box at all is the empty set.

    ``cover`` lists the possibly overlapping boxes as the clause wrote them: the largest of them is a lower bound
    of the union and their sum an upper one. It is empty when the boxes are the cover themselves.
    """

    boxes: tuple[Box, ...]
    cover: tuple[Box, ...] = ()

    @property
    def most(self) -> int | None:
        """How many rows there can be at most, by its filters on unique columns; None if these do not tell.

        >>> found = Filter((0,), ValueSet(np.array([1.0, 0.5])), most=1)
        >>> Region((Box((found,)), Box((found,)))).most, Region((Box((found,)), Box())).most
        (2, None)
        """
        total = 0
        for box in self.boxes:
            least: int | None = None
            for item in box.filters:
                if item.most is not None and (least is None or item.most < least):
                    least = item.most
            if least is None:
                return None
            total += least
        return total if self.boxes else None


EVERY_ROW = Region((Box(),))
