"""The particle walk, the default method: unique weighted prefixes instead of independent samples."""

from __future__ import annotations

import math

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

    Every prefix is expanded into all its allowed symbols. While the children fit the budget, nothing is lost and the
    answer is exactly the model's. Above the budget they are thinned without bias. The last position is summed, never
    sampled. ``offsets`` has one random number in [0, 1) for the thinning at each step. If ``hinted``, the box's hints
    say which prefixes later filters favour.

    The relative variance of the answer is the sum of what each thinning adds, estimated at the step after it: a
    particle that survived with the chance ``pi`` adds ``1 - pi`` times the squared sum of its children.
    """
    state = runtime.start()
    mass = chances = np.ones(1)
    variance = 0.0
    states = States(box)
    steps = walk(box, runtime.order)
    thinned = False
    most = 1
    forward_rows = 0
    for step_index, (step, offset) in enumerate(zip(steps, offsets, strict=False)):
        size = runtime.sizes[step.position]
        forward_rows += len(mass)
        weights = states.weights(step, size)  # (K, size + 1)
        children = mass[:, None] * weights
        children[:, :size] *= softmax(runtime.logits(state, step.position))
        variance += _relative_variance(children.sum(axis=1), chances)
        if step is steps[-1]:
            mass = children.ravel()
            break
        flat = children.ravel()
        alive = np.flatnonzero(flat)
        if len(alive) == 0:
            mass = flat
            break
        hint = hint_of(box, steps, step_index) if hinted and len(alive) > budget else None
        survivors, mass = thin(flat[alive], budget, offset, power, None if hint is None else hint[alive % (size + 1)])
        thinned |= len(survivors) < len(alive)
        most = max(most, len(survivors))
        chances = np.minimum(flat[alive[survivors]] / mass, 1.0)
        parents, symbols = np.divmod(alive[survivors], size + 1)
        state = runtime.advance(state, parents, step.position, symbols)
        states = states.advance(parents, step, symbols, size)
    error = math.sqrt(variance) if thinned else None
    return Answer(
        float(mass.sum()),
        not thinned,
        most,
        tuple(visited_step.position for visited_step in steps),
        forward_rows,
        error,
    )


def _relative_variance(sums: FloatArray, chances: FloatArray) -> float:
    """The variance that thinning added to the total of ``sums``, relative to the square of the total."""
    total = float(sums.sum())
    return float((1.0 - chances) @ (sums / total) ** 2) if total > 0 else math.inf
