"""A particle walk that keeps its particles: it returns weighted rows instead of one density.

A count needs only the total mass at the end. Other questions need the mass of each row: distributions over the values
of a column, contexts for a text model, and samples of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cancellation import check_cancelled
from countless.engine.answer import Trace, Traced, symbol_rows
from countless.engine.columns.particle_budget import offsets
from countless.engine.columns.plan import States, hint_of, walk
from countless.engine.columns.runtime import Runtime, State, softmax
from countless.engine.columns.thinning import even_hints, thin, thin_scattered

LABEL_STREAM = 16  # other random numbers than those of walks that count


def traced(
    orders: Sequence[Runtime[Any]], request: Trace, budget: int, seed: int, stream: int = LABEL_STREAM
) -> Traced:
    """The weighted rows of a box, from every order of a model. The orders share the ``budget`` and the mass."""
    share = max(1, budget // len(orders))
    traces = [_traced(runtime, request, share, seed + index, stream) for index, runtime in enumerate(orders)]
    if len(traces) == 1:
        return traces[0]
    return Traced(
        np.concatenate([rows.symbols for rows in traces]),
        np.concatenate([rows.masses for rows in traces]) / len(traces),
        all(rows.exact for rows in traces),
        sum(rows.forward_rows for rows in traces),
    )


def _traced(runtime: Runtime[Any], request: Trace, budget: int, seed: int, stream: int) -> Traced:
    check_cancelled()
    step_offsets = offsets(seed, stream, len(runtime.sizes))
    if not walk(request.box, runtime.order):
        return Traced(np.array([runtime.sizes]), np.ones(1), True, 0)
    if runtime.kernel is not None:
        return runtime.kernel.trace(request, budget, step_offsets)
    return trace(runtime, request, budget, step_offsets)


def trace(runtime: Runtime[State], request: Trace, budget: int, step_offsets: FloatArray) -> Traced:
    """The walk of :func:`.particles`, which returns its particles. The box has at least one filter that is not free."""
    state, mass, states = runtime.start(), np.ones(1), States(request.box)
    labels = np.zeros(1, dtype=np.int64)
    steps = walk(request.box, runtime.order)
    levels: list[tuple[int, IntArray, IntArray]] = []
    exact, forward_rows = True, 0
    budgets = request.budgets([step.position for step in steps], budget)
    for step_index, (step, offset, most) in enumerate(zip(steps, step_offsets, budgets, strict=False)):
        size = runtime.sizes[step.position]
        forward_rows += len(mass)
        children = mass[:, None] * states.weights(step, size)  # (K, size + 1)
        children[:, :size] *= softmax(runtime.logits(state, step.position))
        last = step is steps[-1]
        if last and not request.expands(step.position):
            mass = children.sum(axis=1)
            break
        flat = children.ravel()
        alive = np.flatnonzero(flat)
        child_labels = labels[alive // (size + 1)]
        if step.position in request.labels:
            label_keys = child_labels * (size + 1) + alive % (size + 1)
            alive = alive[np.argsort(label_keys, kind="stable")]
            child_labels = np.unique(np.sort(label_keys), return_inverse=True)[1]
        survivors, mass = np.arange(len(alive)), flat[alive]
        if len(alive) > most and not last:
            hint = hint_of(request.box, steps, step_index)
            hints = np.ones(len(alive)) if hint is None else hint[alive % (size + 1)]
            if any(earlier.position in request.labels for earlier in steps[: step_index + 1]):
                hints = even_hints(mass, child_labels, request.power, hints)
            survivors, mass = (thin_scattered if request.scattered else thin)(mass, most, offset, request.power, hints)
            exact &= len(survivors) == len(alive)
        parents, symbols = np.divmod(alive[survivors], size + 1)
        labels = child_labels[survivors]
        levels.append((step.position, parents, symbols))
        if not last:
            state = runtime.advance(state, parents, step.position, symbols)
            states = states.advance(parents, step, symbols, size)
    return Traced(symbol_rows(levels, len(mass), runtime.sizes), mass, exact, forward_rows)
