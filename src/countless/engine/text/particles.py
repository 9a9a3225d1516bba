"""The particle walk over strings, the default method: unique weighted prefixes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cancellation import check_cancelled
from countless.engine.columns.thinning import thin
from countless.engine.text.walk import Prefixes, PrefixExtensions, Starts, Walk

SEARCHING_POWER = 0.75  # keeps more of the light prefixes, any of which may come to match
MOST_MORE = 64  # contexts beyond the first for which there are prefixes more
SURVIVING_POWER = 1.0  # keeps the sum, of which most survives


@dataclass(frozen=True)
class Budget:
    """How many prefixes to hold: of those that have yet to match, and of those that must only go on as they are."""

    searching: int = 128
    surviving: int = 16

    @classmethod
    def of(cls, contexts: int) -> Budget:
        """For so many contexts at once: some more for each, so that none is left to chance alone."""
        more = min(contexts - 1, MOST_MORE)
        return cls(cls.searching + 2 * more, cls.surviving + more)


@dataclass(frozen=True, eq=False)
class AcceptedMass:
    """The mass that was accepted in each context, whether all of it was found, and the most prefixes held at once."""

    masses: FloatArray
    exact: bool
    most: int


def particles(walk: Walk, starts: Starts, budget: Budget, numbers: FloatArray) -> AcceptedMass:
    """The mass of strings that the walk's automaton accepts from any of these places on, by context.

    What a pattern forces is spelled out, and where the rest does not matter nothing more is read. Otherwise prefixes
    branch into all their symbols, and past the budget they are thinned without bias; ``numbers`` has the random number
    that each step of it takes. All contexts are one population: those with more mass get more of the budget.
    """
    prefixes, found = walk.settle(walk.begin(starts))
    exact, most = True, len(prefixes)
    for number in numbers:
        if not len(prefixes):
            break
        check_cancelled()
        children, settled = walk.branch(prefixes)
        found = found + settled
        chosen, masses = _thinned(walk, prefixes, children, budget, number)
        exact &= len(chosen) == len(children.masses)
        most = max(most, len(chosen))
        if not len(chosen):
            break
        prefixes, settled = walk.settle(walk.grow(prefixes, children, chosen, masses))
        found = found + settled
    return AcceptedMass(found, exact, most)


def _thinned(
    walk: Walk, prefixes: Prefixes, children: PrefixExtensions, budget: Budget, number: float
) -> tuple[IntArray, FloatArray]:
    """The children to go on with, and their masses; those that search and those that survive are thinned apart."""
    masses, machine = children.masses, walk.machine
    states = machine.next[prefixes.states[children.parents], children.columns]
    matched = machine.surviving[states]
    if matched.all():
        return thin(masses, budget.surviving, number, SURVIVING_POWER)
    searching, surviving = np.flatnonzero(~matched), np.flatnonzero(matched)
    hints = machine.hints[states[searching]] if len(searching) > budget.searching else None
    some, their_masses = thin(masses[searching], budget.searching, number, SEARCHING_POWER, hints)
    others, other_masses = thin(masses[surviving], budget.surviving, number, SURVIVING_POWER)
    return np.concatenate([searching[some], surviving[others]]), np.concatenate([their_masses, other_masses])
