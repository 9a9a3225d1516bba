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

FREE = 0  # the state after which everything is allowed, so that the remaining positions stay MASK
START = 1  # the state before any symbol is read, unless everything is allowed


@dataclass(frozen=True, eq=False)
class Transitions:
    """The transitions of an automaton at one position. Arrays have a row per state and a column per symbol, MASK last.

    ``weights`` are from 0 (forbidden) to 1 (allowed); values between are partly allowed. A state other than FREE reads
    a symbol; FREE reads only MASK and stays FREE. ``next`` is the state after the symbol.
    """

    weights: FloatArray
    next: IntArray

    @classmethod
    def of(cls, weights: NDArray[Any], following: NDArray[Any] | int) -> Transitions:
        """The transitions of the states from START on, with FREE and MASK added."""
        states, size = weights.shape
        all_weights = np.zeros((states + 1, size + 1))
        all_weights[START:, :size] = weights
        all_weights[FREE, size] = 1.0
        next_states = np.zeros((states + 1, size + 1), dtype=np.int64)
        next_states[START:, :size] = following
        return cls(all_weights, next_states)


class Constraint(Protocol):
    """An automaton over the positions of one column, made from a weight for each of its codes."""

    @property
    def weights(self) -> NDArray[Any]:
        """The weight of every code, from 0 (forbidden) to 1 (allowed)."""
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
        """The state before any symbol is read; FREE if everything is allowed."""
        ...

    @property
    def derived(self) -> dict[Any, Any]:
        """A cache of values that other modules derive from the constraint, by module-specific keys."""
        ...

    @property
    def single(self) -> bool:
        """Whether it allows one symbol at its first position."""
        ...

    @property
    def transitions(self) -> tuple[Transitions, ...]:
        """The transitions at each position, computed at first use, because most questions do not need them."""
        ...


def flat_weights(constraint: Constraint) -> NDArray[Any]:
    """The weights of a constraint as compiled code reads them: a contiguous array of booleans or doubles."""
    weights = constraint.weights
    if weights.dtype.char not in "?d":
        weights = weights.astype(np.float64)
    return weights if weights.flags.c_contiguous else np.ascontiguousarray(weights)


class ValueSet:
    """A set of symbols of a one-position column, with a weight each.

    If ``listed``, each symbol matters on its own, so that the position is read even if all are allowed. ``allowed`` is
    the number of symbols with a weight, if it is known and not all of them.

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
        """The transitions at the position."""
        size = len(self.weights)
        weights = np.zeros((2, size + 1))
        weights[START, :size] = self.weights
        weights[FREE, size] = 1.0
        return (Transitions(weights, _all_free(size)),)


def _allows_all(weights: NDArray[Any]) -> bool:
    """Whether every weight is 1. The first and the last are checked first, because one of them is usually not."""
    return bool(weights[0] == 1 and weights[-1] == 1 and weights.min() == 1)


@lru_cache(maxsize=1024)
def _all_free(size: int) -> IntArray:
    """The states after each symbol of a column's only position."""
    after = np.zeros((2, size + 1), dtype=np.int64)
    after.setflags(write=False)
    return after


class DigitSet:
    """A set of codes, with a weight each, of a column whose code is written in digits, leading digit first.

    The states are the prefixes under which some codes are allowed, but not all. A prefix under which every code is
    allowed leads to FREE; in a range, all but two do. If ``listed``, each code matters on its own, and no prefix is
    FREE.

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
        """Whether its transitions are computed."""
        return "transitions" in self.__dict__

    def adopt(self, tables: tuple[Transitions, ...]) -> None:
        """Set the transitions, which compiled code has computed."""
        self.__dict__["transitions"] = tables

    @cached_property
    def transitions(self) -> tuple[Transitions, ...]:
        """The transitions at each digit."""
        weights, radices = self.weights, self.radices
        leaves = np.zeros(math.prod(radices))
        leaves[: len(weights)] = weights
        all_allowed = leaves == 1
        all_allowed[len(weights) :] = True  # digits after the last code
        all_allowed &= not self.listed
        tables: list[Transitions] = []
        prefix_weights: FloatArray = leaves  # of each prefix of the next depth: 1 if any code under it is allowed
        next_states: IntArray = np.full(len(leaves), FREE)
        for radix in reversed(radices):
            prefix_all_allowed: BoolArray = all_allowed.reshape(-1, radix).all(axis=1)
            any_code: BoolArray = np.any((prefix_weights > 0).reshape(-1, radix), axis=1)
            has_state = ~prefix_all_allowed & any_code
            if len(prefix_all_allowed) == 1:  # the empty prefix always has a state, which is the start
                has_state = np.array([True])
            tables.append(
                Transitions.of(prefix_weights.reshape(-1, radix)[has_state], next_states.reshape(-1, radix)[has_state])
            )
            prefix_weights = any_code.astype(np.float64)
            next_states = np.where(has_state, START - 1 + np.cumsum(has_state), FREE)
            all_allowed = prefix_all_allowed
        return tuple(reversed(tables))


@dataclass(frozen=True)
class Filter:
    """A constraint and the positions that it reads, in the order it reads them.

    ``seen`` marks the values of the evidence rows that satisfy it, if these are not the codes of the constraint. If the
    column is unique and only so many values satisfy the filter, ``most`` is the most rows that can.
    """

    positions: tuple[int, ...]
    constraint: Constraint
    seen: BoolArray | None = field(default=None, compare=False)
    most: int | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class TextFilter:
    """A filter on the text column at index ``column`` of the text columns; ``seen`` is as in :class:`Filter`."""

    column: int
    language: Language
    seen: BoolArray | None = None

    def __and__(self, other: TextFilter) -> TextFilter:
        seen = None if self.seen is None or other.seen is None else self.seen & other.seen
        return TextFilter(self.column, self.language & other.language, seen)

    def any(self) -> bool:
        """Whether a string can satisfy it."""
        return (self.seen is not None and bool(self.seen.any())) or self.language.any()


class Hints(Protocol):
    """Hints for sampling a box: which values of a filter's column also satisfy later filters."""

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        """For each code of the filter at ``index``, the share of rows that ``later`` filters allow; None if unknown."""
        ...


@dataclass(frozen=True)
class Box:
    """A conjunction of filters on distinct columns. A box without filters is the whole table.

    ``hints`` guide the sampler, and do not change exact answers.
    """

    filters: tuple[Filter, ...] = ()
    texts: tuple[TextFilter, ...] = ()
    hints: Hints | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Region:
    """A union of disjoint boxes; a region without boxes is empty.

    ``cover`` has the possibly overlapping boxes of the clause as it was written. The largest of them is a lower bound
    of the union, and their sum an upper bound. It is empty if the boxes of the clause are disjoint.
    """

    boxes: tuple[Box, ...]
    cover: tuple[Box, ...] = ()

    @property
    def most(self) -> int | None:
        """The most rows that there can be, by filters on unique columns; None if there is no such bound.

        >>> unique = Filter((0,), ValueSet(np.array([1.0, 0.5])), most=1)
        >>> Region((Box((unique,)), Box((unique,)))).most, Region((Box((unique,)), Box())).most
        (2, None)
        """
        total = 0
        for box in self.boxes:
            bounds = [item.most for item in box.filters if item.most is not None]
            if not bounds:
                return None
            total += min(bounds)
        return total if self.boxes else None


EVERY_ROW = Region((Box(),))
