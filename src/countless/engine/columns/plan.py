"""The plan of a box: its constrained positions, in the order in which a model visits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.region import FREE, Box, Transitions

LEAST_HINT = 1e-9  # above 0, so that every symbol with a positive probability can survive


@dataclass(frozen=True)
class Step:
    """A position to visit, and the transitions of its filter's automaton there."""

    position: int
    filter: int  # index into the box's filters
    transitions: Transitions


def walk(box: Box, order: tuple[int, ...]) -> list[Step]:
    """The steps of ``box`` by rank. A filter that allows everything (its start is FREE) has no steps."""
    ranks = ranks_of(order)
    steps = [
        Step(position, index, transitions)
        for index, box_filter in enumerate(box.filters)
        if box_filter.constraint.start != FREE
        for position, transitions in zip(box_filter.positions, box_filter.constraint.transitions, strict=True)
    ]
    return sorted(steps, key=lambda step: ranks[step.position])


@lru_cache(maxsize=64)
def ranks_of(order: tuple[int, ...]) -> dict[int, int]:
    """The rank of each position in ``order``."""
    return {position: rank for rank, position in enumerate(order)}


def hint_of(box: Box, steps: Sequence[Step], step_index: int) -> FloatArray | None:
    """For each symbol at a step, MASK last, a hint of how often the later filters hold; None if unknown.

    For a column of several positions only the first position has hints: a leading digit has the best of its codes.
    """
    step = steps[step_index]
    box_filter = box.filters[step.filter]
    if box.hints is None or step.position != box_filter.positions[0]:
        return None
    later_filters = list(
        dict.fromkeys(later_step.filter for later_step in steps[step_index + 1 :] if later_step.filter != step.filter)
    )
    return folded(box.hints.ahead(step.filter, later_filters), step.transitions.weights.shape[1] - 1)


def folded(ahead: FloatArray | None, symbols: int, least: float = LEAST_HINT) -> FloatArray | None:
    """Hints of codes as hints of symbols, MASK last: each symbol has the largest hint of the codes that it leads."""
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
    """The state of each of ``K`` particles in each filter's automaton."""

    def __init__(self, box: Box, states: IntArray | None = None) -> None:
        self.box = box
        self.states = (
            np.array([[box_filter.constraint.start for box_filter in box.filters]]) if states is None else states
        )  # (K, filters)

    def weights(self, step: Step, size: int) -> FloatArray:
        """Weights (K, size + 1) of the symbols at ``step``. The last is MASK, read only in state FREE."""
        weights: FloatArray = step.transitions.weights[self.states[:, step.filter]]
        return weights

    def advance(self, parents: IntArray, step: Step, symbols: IntArray, size: int) -> States:
        """The states after each particle ``parents[i]`` read ``symbols[i]``; MASK changes nothing."""
        states = self.states[parents]
        states[:, step.filter] = step.transitions.next[states[:, step.filter], symbols]
        return States(self.box, states)
