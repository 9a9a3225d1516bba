"""The particle walk, the default method: unique weighted prefixes instead of independent samples."""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray
from countless.engine.answer import Answer
from countless.engine.columns.plan import States, hint_of, walk
from countless.engine.columns.runtime import Runtime, State, softmax
from countless.engine.columns.thinning import THINNING_POWER, thin
from countless.region import Box


def particles(
    runtime: Runtime[State],
    box: Box,
    budget: int,
    offsets: FloatArray,
    power: float = THINNING_POWER,
    hinted: bool = False,
) -> Answer:
    """The density of ``box`` from at most about ``budget`` prefixes at a time.

    Every prefix is expanded into all its allowed symbols. While they fit the budget nothing is lost and the answer
    is exact under the model; past it they are thinned without bias. The last position is summed, never sampled.
    ``offsets`` holds the one random number in [0, 1) that thinning at each step takes. If ``hinted``, the box's hints
    tell which prefixes later filters favour.
    """
    state = runtime.start()
    mass = np.ones(1)
    states = States(box)
    steps = walk(box, runtime.order)
    thinned = False
    most = 1
    forward_rows = 0
    for place, (step, offset) in enumerate(zip(steps, offsets, strict=False)):
        size = runtime.sizes[step.position]
        forward_rows += len(mass)
        weights = states.weights(step, size)  # (K, size + 1)
        children = mass[:, None] * weights
        children[:, :size] *= softmax(runtime.logits(state, step.position))
        if step is steps[-1]:
            mass = children.ravel()
            break
        flat = children.ravel()
        alive = np.flatnonzero(flat)
        if len(alive) == 0:
            return Answer(0.0, not thinned, most, tuple(s.position for s in steps), forward_rows)
        hint = hint_of(box, steps, place) if hinted and len(alive) > budget else None
        chosen, mass = thin(flat[alive], budget, offset, power, None if hint is None else hint[alive % (size + 1)])
        thinned |= len(chosen) < len(alive)
        most = max(most, len(chosen))
        parents, symbols = np.divmod(alive[chosen], size + 1)
        state = runtime.advance(state, parents, step.position, symbols)
        states = states.advance(parents, step, symbols, size)
    return Answer(float(mass.sum()), not thinned, most, tuple(s.position for s in steps), forward_rows)
