"""A particle walk that keeps its particles: it returns weighted rows instead of one density.

A count needs only the mass that is left at the end. Other questions need to know whose mass it is: how it is spread
over the values of a column, which rows a text model should hear of, which rows to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cancellation import check_cancelled
from countless.engine.answer import Trace, Traced, unrolled
from countless.engine.columns.particle_budget import offsets
from countless.engine.columns.plan import States, hint_of, walk
from countless.engine.columns.runtime import Runtime, State, softmax
from countless.engine.columns.thinning import even_hints, thin, thin_scattered

LABEL_STREAM = 16  # keeps these walks' random numbers apart from those of counts


def traced(orders: Sequence[Runtime[Any]], asked: Trace, budget: int, seed: int, stream: int = LABEL_STREAM) -> Traced:
    """The rows of a box under every order of a model, which share the ``budget`` and the mass."""
    share = max(1, budget // len(orders))
    found = [_traced(runtime, asked, share, seed + place, stream) for place, runtime in enumerate(orders)]
    if len(found) == 1:
        return found[0]
    return Traced(
        np.concatenate([one.symbols for one in found]),
        np.concatenate([one.masses for one in found]) / len(found),
        all(one.exact for one in found),
        sum(one.forward_rows for one in found),
    )


def _traced(runtime: Runtime[Any], asked: Trace, budget: int, seed: int, stream: int) -> Traced:
    check_cancelled()
    numbers = offsets(seed, stream, len(runtime.sizes))
    if not walk(asked.box, runtime.order):
        return Traced(np.array([runtime.sizes]), np.ones(1), True, 0)
    if runtime.kernel is not None:
        return runtime.kernel.trace(asked, budget, numbers)
    return trace(runtime, asked, budget, numbers)


def trace(runtime: Runtime[State], asked: Trace, budget: int, numbers: FloatArray) -> Traced:
    """The walk of :func:`.particles`, with all its particles. It asks something at least."""
    state, mass, states = runtime.start(), np.ones(1), States(asked.box)
    labels = np.zeros(1, dtype=np.int64)
    steps = walk(asked.box, runtime.order)
    levels: list[tuple[int, IntArray, IntArray]] = []
    exact, forward_rows = True, 0
    budgets = asked.budgets([step.position for step in steps], budget)
    for place, (step, number, kept) in enumerate(zip(steps, numbers, budgets, strict=False)):
        size = runtime.sizes[step.position]
        forward_rows += len(mass)
        children = mass[:, None] * states.weights(step, size)  # (K, size + 1)
        children[:, :size] *= softmax(runtime.logits(state, step.position))
        last = step is steps[-1]
        if last and not asked.expands(step.position):
            mass = children.sum(axis=1)
            break
        flat = children.ravel()
        alive = np.flatnonzero(flat)
        child_labels = labels[alive // (size + 1)]
        if step.position in asked.labels:
            names = child_labels * (size + 1) + alive % (size + 1)
            alive = alive[np.argsort(names, kind="stable")]
            child_labels = np.unique(np.sort(names), return_inverse=True)[1]
        chosen, mass = np.arange(len(alive)), flat[alive]
        if len(alive) > kept and not last:
            hint = hint_of(asked.box, steps, place)
            hints = np.ones(len(alive)) if hint is None else hint[alive % (size + 1)]
            if any(before.position in asked.labels for before in steps[: place + 1]):
                hints = even_hints(mass, child_labels, asked.power, hints)
            chosen, mass = (thin_scattered if asked.scattered else thin)(mass, kept, number, asked.power, hints)
            exact &= len(chosen) == len(alive)
        parents, symbols = np.divmod(alive[chosen], size + 1)
        labels = child_labels[chosen]
        levels.append((step.position, parents, symbols))
        if not last:
            state = runtime.advance(state, parents, step.position, symbols)
            states = states.advance(parents, step, symbols, size)
    return Traced(unrolled(levels, len(mass), runtime.sizes), mass, exact, forward_rows)
