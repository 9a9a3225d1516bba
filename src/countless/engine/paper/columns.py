"""The paper's samplers: progressive sampling over independent paths, each a product of in-range probabilities.

A *plain* sampler makes a whole forward pass for each position, as in the paper; it is the definition. The others walk:
they reuse the activations of earlier positions and of other paths with the same symbols. Their answers are the same but
for rounding, and much faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Answer
from countless.engine.columns.plan import States, Step, walk
from countless.engine.columns.runtime import Logits, Runtime, State
from countless.region import FREE, Box

GROUP_PATHS = 1000  # different paths that are walked together: more do not fit the caches

Path = Sequence[tuple[int, Step | None]]  # positions to draw, each with the step of its filter, if any


def progressive(
    runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator, plain: bool = False
) -> Answer:
    """Progressive sampling: every position up to the last constrained one is sampled, constrained or not."""
    steps = {step.position: step for step in walk(box, runtime.order)}
    last = max((runtime.order.index(position) for position in steps), default=-1)
    path: Path = [(position, steps.get(position)) for position in runtime.order[: last + 1]]
    return _sample(runtime, box, path, samples, rng, plain, skips=False)


def skipping(runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator, plain: bool = False) -> Answer:
    """Progressive sampling with variable skipping: unconstrained positions are MASK and never sampled."""
    path: Path = [(step.position, step) for step in walk(box, runtime.order)]
    return _sample(runtime, box, path, samples, rng, plain, skips=True)


def _sample(
    runtime: Runtime[State],
    box: Box,
    path: Path,
    samples: int,
    rng: np.random.Generator,
    plain: bool,
    skips: bool,
) -> Answer:
    """The mean over ``samples`` paths of the product of in-range probabilities along the path."""
    sizes = [min(GROUP_PATHS, samples - start) for start in range(0, samples, GROUP_PATHS)]
    if plain:
        density = sum(float(_products(runtime, box, path, size, rng, skips).sum()) for size in sizes)
    else:
        points = np.concatenate([rng.random((len(path), size)) for size in sizes], axis=1)
        density = _walked(runtime, box, path, points, skips)
    visited = tuple(position for position, _ in path)
    return Answer(
        density / samples, exact=not path, particles=samples, visited=visited, forward_rows=samples * len(path)
    )


def _products(
    runtime: Runtime[Any], box: Box, path: Path, samples: int, rng: np.random.Generator, skips: bool
) -> FloatArray:
    """Each path's product (S,) of in-range probabilities, with a whole forward pass for each position."""
    codes = np.tile(np.array(runtime.sizes), (samples, 1))  # (S, positions), all MASK
    density = np.ones(samples)
    states = States(box, np.repeat(States(box).states, samples, axis=0))
    for position, step in path:
        size = runtime.sizes[position]
        masses, totals, in_range = _in_range(runtime.conditional(codes, position), states, step, size, skips)
        density *= in_range / totals
        symbols = draw(masses, in_range, rng)
        codes[:, position] = symbols
        if step is not None:
            states = states.advance(np.arange(samples), step, symbols, size)
    return density


@dataclass(frozen=True)
class _Prefixes(Generic[State]):
    """Distinct prefixes of paths, up to an index in the path, and the samples that have each prefix."""

    path_index: int
    state: State
    density: FloatArray  # (K,), the products of in-range probabilities
    states: States  # (K, filters)
    samples: IntArray  # (S,), the numbers of the samples
    rows: IntArray  # (S,), the prefix of each sample


def _walked(runtime: Runtime[State], box: Box, path: Path, points: FloatArray, skips: bool) -> float:
    """The sum of the products of the paths whose random numbers are ``points`` (positions, S).

    Paths that have drawn the same symbols share their computation. Where they differ, they go on in groups that fit the
    caches.
    """
    samples = points.shape[1]
    if not path:
        return float(samples)
    total = 0.0
    first = runtime.order[0]
    state = runtime.advance(runtime.start(), np.zeros(1, dtype=np.int64), first, np.array([runtime.sizes[first]]))
    todo = [_Prefixes(0, state, np.ones(1), States(box), np.arange(samples), np.zeros(samples, dtype=np.int64))]
    while todo:
        prefixes = todo.pop()
        position, step = path[prefixes.path_index]
        next_index = prefixes.path_index + 1
        size = runtime.sizes[position]
        masses, totals, in_range = _in_range(
            runtime.logits(prefixes.state, position), prefixes.states, step, size, skips
        )
        density = prefixes.density * (in_range / totals)
        if next_index == len(path):
            total += float(density[prefixes.rows].sum())
            continue
        symbols = choose(masses, in_range, points[prefixes.path_index, prefixes.samples], prefixes.rows)
        if len(prefixes.samples) == len(density):  # all paths differ: nothing is left to share
            order = np.argsort(prefixes.rows)
            in_order, symbols = prefixes.samples[order], symbols[order]
            rows = np.arange(len(in_order))
            state, states = runtime.follow(prefixes.state, position, symbols), prefixes.states
            if step is not None:
                states = states.advance(rows, step, symbols, size)
            todo.append(_Prefixes(next_index, state, density, states, in_order, rows))
            continue
        distinct, rows = np.unique(prefixes.rows * (size + 1) + symbols, return_inverse=True)
        order = np.argsort(rows, kind="stable")
        for start in range(0, len(distinct), GROUP_PATHS):
            parents, drawn = np.divmod(distinct[start : start + GROUP_PATHS], size + 1)
            group = order[slice(*np.searchsorted(rows[order], (start, start + GROUP_PATHS)))]
            states = States(box, prefixes.states.states[parents])
            if step is not None:
                states = prefixes.states.advance(parents, step, drawn, size)
            state = runtime.advance(prefixes.state, parents, position, drawn)
            todo.append(
                _Prefixes(next_index, state, density[parents], states, prefixes.samples[group], rows[group] - start)
            )
    return total


def _in_range(
    logits: Logits, states: States, step: Step | None, size: int, skips: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Masses of the allowed symbols (K, symbols), the mass of all symbols (K,), and that of the allowed ones (K,).

    If a column's later positions are free for a path, the path reads MASK there if it ``skips``, else any symbol.
    """
    masses = np.exp(logits - logits.max(axis=1, keepdims=True))  # (K, size)
    totals = masses.sum(axis=1)
    if step is None:
        return masses, totals, totals
    weights = states.weights(step, size)
    if not skips:
        free = states.states[:, step.filter] == FREE
        weights = np.where(free[:, None], np.arange(size + 1) < size, weights)
    allowed = np.concatenate([masses, totals[:, None]], axis=1) * weights  # where MASK is allowed, nothing else is
    return allowed, totals, allowed.sum(axis=1)


def draw(masses: Logits, totals: Logits, rng: np.random.Generator) -> IntArray:
    """One symbol per row in proportion to ``masses`` (S, D). A row without mass gets symbol 0."""
    return choose(masses, totals, rng.random(len(masses)), np.arange(len(masses)))


def choose(masses: Logits, totals: Logits, points: FloatArray, rows: IntArray) -> IntArray:
    """For each of ``points``, which are in [0, 1), the symbol there among the ``masses`` (K, D) of its row."""
    thresholds = (points * totals[rows]).astype(masses.dtype)
    edges = np.cumsum(masses, axis=1)
    symbols: IntArray = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), GROUP_PATHS):
        batch = slice(start, start + GROUP_PATHS)
        symbols[batch] = np.count_nonzero(edges[rows[batch]] <= thresholds[batch, None], axis=1)
    np.minimum(symbols, masses.shape[1] - 1, out=symbols)
    for index in np.flatnonzero(masses[rows, symbols] <= 0):  # rounding led past the last symbol with mass
        row = rows[index]
        symbols[index] = np.flatnonzero(masses[row] > 0)[-1] if totals[row] > 0 else 0
    return symbols
