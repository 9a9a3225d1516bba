"""The constrained positions of a box, in the order in which a model visits them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.region import Box, Constraint


@dataclass(frozen=True)
class Step:
    """A position to visit, and the constraint that reads it."""

    position: int
    filter: int  # which of the box's filters
    constraint: Constraint


def walk(box: Box, order: tuple[int, ...]) -> list[Step]:
    """The steps of ``box`` by rank. Filters that ask nothing are skipped, as their columns are."""
    ranks = {position: rank for rank, position in enumerate(order)}
    steps = [
        Step(position, index, item.constraint)
        for index, item in enumerate(box.filters)
        if not item.constraint.free(item.constraint.start())
        for position in item.positions
    ]
    return sorted(steps, key=lambda step: ranks[step.position])


class States:
    """Where each of ``K`` particles stands in each filter's automaton."""

    def __init__(self, box: Box, states: IntArray | None = None) -> None:
        self.box = box
        self.states = (
            np.array([[item.constraint.start() for item in box.filters]]) if states is None else states
        )  # (K, filters)

    def weights(self, step: Step, size: int) -> FloatArray:
        """Weights (K, size + 1) of the symbols at ``step``; the last is MASK, which only a free particle takes."""
        column = self.states[:, step.filter]
        weights = np.zeros((len(column), size + 1))
        for state in np.unique(column):
            if step.constraint.free(int(state)):
                weights[column == state, size] = 1.0
            else:
                weights[column == state, :size] = step.constraint.weights(int(state))
        return weights

    def advance(self, parents: IntArray, step: Step, symbols: IntArray, size: int) -> States:
        """The states after each particle ``parents[i]`` read ``symbols[i]``; MASK changes nothing."""
        states = self.states[parents]
        before = states[:, step.filter].copy()
        for state in np.unique(before):
            reading = (before == state) & (symbols < size)
            states[reading, step.filter] = step.constraint.next(int(state), symbols[reading])
        return States(self.box, states)
