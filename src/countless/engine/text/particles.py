"""The particle walk over strings, the default method: unique weighted prefixes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cancellation import check_cancelled
from countless.engine.columns.thinning import thin
from countless.engine.text.walk import Prefixes, PrefixExtensions, Starts, Walk

SEARCHING_POWER = 0.75  # keeps more of the light prefixes, which may still match
MOST_MORE = 64  # contexts beyond the first that add prefixes to the budget
SURVIVING_POWER = 1.0  # least variance of the sum, most of which survives


@dataclass(frozen=True)
class Budget:
    """The number of prefixes: ``searching`` ones have not matched yet, ``surviving`` ones need only stay accepted."""

    searching: int = 128
    surviving: int = 16

    @classmethod
    def of(cls, contexts: int) -> Budget:
        """A budget for several contexts: some more prefixes for each, so that every context keeps a few."""
        extra_contexts = min(contexts - 1, MOST_MORE)
        return cls(cls.searching + 2 * extra_contexts, cls.surviving + extra_contexts)


@dataclass(frozen=True, eq=False)
class AcceptedMass:
    """The accepted mass in each context, whether it is exact, and the largest number of prefixes at once."""

    masses: FloatArray
    exact: bool
    most: int


def particles(walk: Walk, starts: Starts, budget: Budget, offsets: FloatArray) -> AcceptedMass:
    """The mass of strings that the walk's automaton accepts from these starts, by context.

    Forced symbols are read at once, and reading stops where every string is accepted. Otherwise prefixes branch into
    all their symbols; above the budget they are thinned without bias. ``offsets`` has the random number for the
    thinning at each step. All contexts are one population: those with more mass get more of the budget.
    """
    prefixes, accepted = walk.settle(walk.begin(starts))
    exact, most = True, len(prefixes)
    for offset in offsets:
        if not len(prefixes):
            break
        check_cancelled()
        children, settled = walk.branch(prefixes)
        accepted = accepted + settled
        indices, masses = _thinned(walk, prefixes, children, budget, offset)
        exact &= len(indices) == len(children.masses)
        most = max(most, len(indices))
        if not len(indices):
            break
        prefixes, settled = walk.settle(walk.grow(prefixes, children, indices, masses))
        accepted = accepted + settled
    return AcceptedMass(accepted, exact, most)


def _thinned(
    walk: Walk, prefixes: Prefixes, children: PrefixExtensions, budget: Budget, offset: float
) -> tuple[IntArray, FloatArray]:
    """The children to keep and their masses. Searching and surviving ones are thinned separately."""
    masses, machine = children.masses, walk.machine
    states = machine.next[prefixes.states[children.parents], children.columns]
    matched = machine.surviving[states]
    if matched.all():
        return thin(masses, budget.surviving, offset, SURVIVING_POWER)
    searching, surviving = np.flatnonzero(~matched), np.flatnonzero(matched)
    hints = machine.hints[states[searching]] if len(searching) > budget.searching else None
    kept_searching, searching_masses = thin(masses[searching], budget.searching, offset, SEARCHING_POWER, hints)
    kept_surviving, surviving_masses = thin(masses[surviving], budget.surviving, offset, SURVIVING_POWER)
    indices = np.concatenate([searching[kept_searching], surviving[kept_surviving]])
    return indices, np.concatenate([searching_masses, surviving_masses])
