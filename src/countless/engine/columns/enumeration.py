"""Exact enumeration of every allowed combination: the reference for the other methods."""

from __future__ import annotations

import numpy as np

from countless.engine.answer import Answer
from countless.engine.columns.plan import States, walk
from countless.engine.columns.runtime import Runtime, State, softmax
from countless.errors import QueryTooLargeError
from countless.region import Box

MOST_COMBINATIONS = 1_000_000


def exact(runtime: Runtime[State], box: Box) -> Answer:
    """The model's density of ``box``: the sum over all combinations of allowed symbols, with MASK elsewhere.

    Every factor comes from a whole forward pass. With too many combinations it raises :class:`QueryTooLargeError`.
    """
    codes = np.array([runtime.sizes])  # (1, positions), all MASK
    mass = np.ones(1)
    states = States(box)
    steps = walk(box, runtime.order)
    forward_rows = 0
    for step in steps:
        if len(mass) == 0:
            break
        size = runtime.sizes[step.position]
        weights = states.weights(step, size)  # (K, size + 1)
        if np.count_nonzero(weights) > MOST_COMBINATIONS:
            raise QueryTooLargeError(
                f"the exact method would enumerate more than {MOST_COMBINATIONS:,} combinations: use --method particles"
            )
        forward_rows += len(codes)
        probs = np.ones((len(codes), size + 1))
        probs[:, :size] = softmax(runtime.conditional(codes, step.position))
        children = mass[:, None] * probs * weights  # (K, size + 1)
        parents, symbols = np.nonzero(weights)
        mass = children[parents, symbols]
        codes = codes[parents]
        codes[:, step.position] = symbols
        states = states.advance(parents, step, symbols, size)
    return Answer(
        float(mass.sum()),
        exact=True,
        particles=len(mass),
        visited=tuple(s.position for s in steps),
        forward_rows=forward_rows,
    )
