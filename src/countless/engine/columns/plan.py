"""The plan of a box: its constrained positions, in the order in which a model visits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.region import FREE, Box, Transitions

LEAST_HINT = 1e-9  # so that nothing which the model holds possible is left out for certain


@dataclass(frozen=True)
class Step:
    """A position to visit, and how the filter that asks for it reads it."""

    position: int
    filter: int  # which of the box's filters
    transitions: Transitions


def walk(box: Box, order: tuple[int, ...]) -> list[Step]:
    """The steps of ``box`` by rank. Filters that ask nothing are skipped, as their columns are."""
    ranks = ranks_of(order)
    steps = [
        Step(position, index, transitions)
        for index, item in enumerate(box.filters)
        if item.constraint.start != FREE
        for position, transitions in zip(item.positions, item.constraint.transitions, strict=True)
    ]
    return sorted(steps, key=lambda step: ranks[step.position])


@lru_cache(maxsize=64)
def ranks_of(order: tuple[int, ...]) -> dict[int, int]:
    """The rank of each position in ``order``."""
    return {position: rank for rank, position in enumerate(order)}


def hint_of(box: Box, steps: Sequence[Step], place: int) -> FloatArray | None:
    """For each symbol at the step at ``place``, MASK last, about how often the filters after it hold; None if unknown.

    Of a column of several positions only the leading one is told about: for a leading digit, all that it leads to.
    """
    step = steps[place]
    item = box.filters[step.filter]
    if box.hints is None or step.position != item.positions[0]:
        return None
    later = list(dict.fromkeys(other.filter for other in steps[place + 1 :] if other.filter != step.filter))
    return folded(box.hints.ahead(step.filter, later), step.transitions.weights.shape[1] - 1)


def folded(ahead: FloatArray | None, symbols: int, least: float = LEAST_HINT) -> FloatArray | None:
    """What is known of each code as a hint of each symbol, MASK last: the most that a code with this symbol has."""
    if ahead is None:
        return None
    if len(ahead) != symbols:
        codes = np.zeros(symbols * -(-len(ahead) // symbols))
        codes[: len(ahead)] = ahead
        ahead = codes.reshape(symbols, -1).max(axis=1)
    hint = np.ones(symbols + 1)  # 1 for MASK
    np.maximum(ahead, least, out=hint[:symbols])
    return hint


class States:
    """Where each of ``K`` particles stands in each filter's automaton."""

    def __init__(self, box: Box, states: IntArray | None = None) -> None:
        self.box = box
        self.states = (
            np.array([[item.constraint.start for item in box.filters]]) if states is None else states
        )  # (K, filters)

    def weights(self, step: Step, size: int) -> FloatArray:
        """Weights (K, size + 1) of the symbols at ``step``; the last is MASK, which only a free particle takes."""
        weights: FloatArray = step.transitions.weights[self.states[:, step.filter]]
        return weights

    def advance(self, parents: IntArray, step: Step, symbols: IntArray, size: int) -> States:
        """The states after each particle ``parents[i]`` read ``symbols[i]``; MASK changes nothing."""
        states = self.states[parents]
        states[:, step.filter] = step.transitions.next[states[:, step.filter], symbols]
        return States(self.box, states)
