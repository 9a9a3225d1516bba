"""Exact enumeration of every string that a pattern accepts: the reference for the other methods."""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray
from countless.engine.text.walk import Starts, Walk
from countless.errors import QueryTooLargeError

MOST_PREFIXES = 100_000


def exact(walk: Walk, starts: Starts) -> FloatArray:
    """The mass of all strings that the walk's automaton accepts from these starts, by context."""
    prefixes, mass = walk.settle(walk.begin(starts))
    while len(prefixes):
        children, settled = walk.branch(prefixes)
        mass += settled
        if walk.forward_rows + len(children.masses) > MOST_PREFIXES:
            raise QueryTooLargeError(
                f"the pattern has more than {MOST_PREFIXES:,} beginnings to enumerate: use the method particles"
            )
        if not len(children.masses):
            break
        all_children = np.arange(len(children.masses))
        prefixes, settled = walk.settle(walk.grow(prefixes, children, all_children, children.masses))
        mass += settled
    return mass
