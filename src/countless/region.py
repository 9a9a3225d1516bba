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

FREE = 0  # the state in which everything that follows is allowed, so that the remaining positions can stay MASKed
START = 1  # the state before any symbol is read, unless everything is allowed


@dataclass(frozen=True, eq=False)
class Transitions:
    """How an automaton reads one position. Both arrays have a row per state and a column per symbol, MASK last.

    ``weights`` are in [0, 1]: 0 is forbidden, 1 is allowed, and a value between is partly allowed. A state other than
    FREE reads a symbol; FREE reads only MASK, and stays FREE. ``next`` is the state after the symbol.
    """

    weights: FloatArray
    next: IntArray

    @classmethod
    def of(cls, weights: NDArray[Any], next_states: NDArray[Any] | int) -> Transitions:
        """Transitions from the tables of the states from START on: adds the row of FREE and the column of MASK."""
        states, size = weights.shape
        padded_weights = np.zeros((states + 1, size + 1))
        padded_weights[START:, :size] = weights
        padded_weights[FREE, size] = 1.0
        padded_next = np.zeros((states + 1, size + 1), dtype=np.int64)
        padded_next[START:, :size] = next_states
        return cls(padded_weights, padded_next)


class Constraint(Protocol):
    """An automaton over the positions of one column, made from a weight for each of its codes."""

    @property
    def weights(self) -> NDArray[Any]:
        """The weight of every code: 0 is forbidden, 1 is allowed, a value between is partly allowed."""
        ...

    @property
    def radices(self) -> tuple[int, ...]:
        """How many symbols each of its positions has."""
        ...

    @property
    def listed(self) -> bool:
        """Whether every position must be read, even where all codes are allowed."""
        ...

    @property
    def start(self) -> int:
        """The state before any symbol is read; FREE if every code is allowed."""
        ...

    @property
    def derived(self) -> dict[Any, Any]:
        """A cache of what callers compute from the constraint; each caller has a key of its own."""
        ...

    @property
    def single(self) -> bool:
        """Whether it allows one symbol at its first position."""
        ...

    @property
    def transitions(self) -> tuple[Transitions, ...]:
        """How each position in turn is read. Made on first access, because most questions do not need it."""
        ...


def flat_weights(constraint: Constraint) -> NDArray[Any]:
    """The weights of a constraint as compiled code reads them: contiguous, booleans or doubles."""
    weights = constraint.weights
    if weights.dtype.char not in "?d":
        weights = weights.astype(np.float64)
    return weights if weights.flags.c_contiguous else np.ascontiguousarray(weights)


class ValueSet:
    """A set of symbols of a column with one position, with a weight for each symbol.

    If ``listed``, the position is read even where all symbols are allowed. ``allowed_count`` is how many symbols have a
    weight, if that is known; it is neither none nor all.

    >>> odd = ValueSet(np.array([0.0, 1.0, 0.0, 1.0]))
    >>> odd.transitions[0].weights[odd.start].tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, weights: NDArray[Any], listed: bool = False, allowed_count: int | None = None) -> None:
        self.weights, self.listed, self._allowed_count = weights, listed, allowed_count
        self.derived: dict[Any, Any] = {}
        self.start = START if listed or allowed_count or not _allows_all(weights) else FREE

    @property
    def radices(self) -> tuple[int, ...]:
        """How many symbols the position has."""
        return (len(self.weights),)

    @property
    def single(self) -> bool:
        """Whether it allows one symbol."""
        if self._allowed_count is None:
            self._allowed_count = int(np.count_nonzero(self.weights))
        return self._allowed_count == 1

    @cached_property
    def transitions(self) -> tuple[Transitions, ...]:
        """How the position is read."""
        size = len(self.weights)
        weights = np.zeros((2, size + 1))
        weights[START, :size] = self.weights
        weights[FREE, size] = 1.0
        return (Transitions(weights, _all_free(size)),)


def _allows_all(weights: NDArray[Any]) -> bool:
    """Whether every weight is 1. Looks at the first and the last one first: usually one of them is not 1."""
    return bool(weights[0] == 1 and weights[-1] == 1 and weights.min() == 1)


@lru_cache(maxsize=1024)
def _all_free(size: int) -> IntArray:
    """The state after each symbol of a column's only position: always FREE."""
    next_states = np.zeros((2, size + 1), dtype=np.int64)
    next_states.setflags(write=False)
    return next_states


class DigitSet:
    """A set of codes, with a weight each, of a column whose code is written in digits, leading digit first.

    The states are the prefixes under which some codes are allowed and others are not. A prefix under which every code
    is allowed is FREE: in a range, all but two are. If ``listed``, every digit is read, and no prefix is FREE.

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
        """Whether it allows only one leading digit."""
        allowed_codes = np.flatnonzero(self.weights)
        codes_per_digit = math.prod(self.radices[1:])
        return bool(len(allowed_codes) and allowed_codes[0] // codes_per_digit == allowed_codes[-1] // codes_per_digit)

    @property
    def is_tabulated(self) -> bool:
        """Whether its transitions have been computed."""
        return "transitions" in self.__dict__

    def adopt(self, tables: tuple[Transitions, ...]) -> None:
        """Set the transitions, which compiled code has computed."""
        self.__dict__["transitions"] = tables

    @cached_property
    def transitions(self) -> tuple[Transitions, ...]:
        """How each digit in turn is read."""
        weights, radices = self.weights, self.radices
        leaf_weights = np.zeros(math.prod(radices))
        leaf_weights[: len(weights)] = weights
        is_full = leaf_weights == 1
        is_full[len(weights) :] = True  # after the last code there are digits that stand for no code
        is_full &= not self.listed
        tables: list[Transitions] = []
        prefix_weights: FloatArray = leaf_weights  # of each prefix one digit longer: 1 if any code under it is allowed
        next_states: IntArray = np.full(len(leaf_weights), FREE)
        for radix in reversed(radices):
            all_full: BoolArray = is_full.reshape(-1, radix).all(axis=1)
            any_allowed: BoolArray = np.any((prefix_weights > 0).reshape(-1, radix), axis=1)
            has_state = ~all_full & any_allowed
            if len(all_full) == 1:  # the empty prefix always has a state: START
                has_state = np.array([True])
            tables.append(
                Transitions.of(prefix_weights.reshape(-1, radix)[has_state], next_states.reshape(-1, radix)[has_state])
            )
            prefix_weights = any_allowed.astype(np.float64)
            next_states = np.where(has_state, START - 1 + np.cumsum(has_state), FREE)
            is_full = all_full
        return tuple(reversed(tables))


@record(eq=True)
class Filter:
    """A constraint and the positions that it reads, in the order it reads them.

    ``seen`` marks the values of the evidence rows that satisfy it, if the column's codes do not say which do.
    ``most`` is the largest number of rows that can satisfy it, known only if the column is unique.
    """

    positions: tuple[int, ...]
    constraint: Constraint
    seen: BoolArray | None = field(default=None, compare=False)
    most: int | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class TextFilter:
    """A filter on the text column number ``column`` of the table's text columns; ``seen`` as in :class:`Filter`."""

    column: int
    language: Language
    seen: BoolArray | None = None

    def __and__(self, other: TextFilter) -> TextFilter:
        seen = None if self.seen is None or other.seen is None else self.seen & other.seen
        return TextFilter(self.column, self.language & other.language, seen)

    def any(self) -> bool:
        """Whether any string can satisfy it."""
        return (self.seen is not None and bool(self.seen.any())) or self.language.any()


class Hints(Protocol):
    """Statistics that guide a sampler: for which values of one filter the other filters of the box hold, too."""

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """For each code of filter ``index``, about how often the ``later`` filters hold, too; None if unknown."""
        ...


@record(eq=True)
class Box:
    """A conjunction of filters on distinct columns; a box without filters is the whole table.

    ``hints`` guide a sampler, and do not change exact answers.
    """

    filters: tuple[Filter, ...] = ()
    texts: tuple[TextFilter, ...] = ()
    hints: Hints | None = field(default=None, compare=False)


@record(eq=True)
class Region:
    """A union of disjoint boxes; without boxes it is empty.

    ``cover`` lists the boxes as the clause wrote them, which may overlap. The density of the largest is a lower bound
    for the union, and the sum of all an upper bound. It is empty when ``boxes`` are the clause's own boxes.
    """

    boxes: tuple[Box, ...]
    cover: tuple[Box, ...] = ()

    @property
    def most(self) -> int | None:
        """The largest number of rows that can match, by the filters on unique columns; None if there is no such bound.

        >>> one_row = Filter((0,), ValueSet(np.array([1.0, 0.5])), most=1)
        >>> Region((Box((one_row,)), Box((one_row,)))).most, Region((Box((one_row,)), Box())).most
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
