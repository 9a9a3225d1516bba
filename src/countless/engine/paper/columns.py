"""The paper's samplers: progressive sampling over independent paths, each a product of in-range probabilities.

A *plain* one is as the paper has it, a whole forward pass for each position, and the definition. The others walk: they
re-use what earlier positions, and other paths with the same symbols, have computed, and come to the same answers but
for rounding, much sooner.
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

TOGETHER = 1000  # different paths that are walked at a time: more do not fit the caches

Path = Sequence[tuple[int, Step | None]]  # positions to draw, each with what a filter asks of it


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
    sizes = [min(TOGETHER, samples - done) for done in range(0, samples, TOGETHER)]
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
    """Different beginnings of paths, up to a place: the model's state, their products, and whose they are."""

    place: int
    state: State
    density: FloatArray  # (K,)
    states: States  # (K, filters)
    samples: IntArray  # (S,), the numbers of the samples that begin like this
    rows: IntArray  # (S,), with which prefix


def _walked(runtime: Runtime[State], box: Box, path: Path, points: FloatArray, skips: bool) -> float:
    """The sum of the products of the paths whose random numbers are ``points`` (positions, S).

    What paths compute alike is computed once, as long as they have drawn the same symbols. Where they part, they go on
    in groups that fit the caches.
    """
    samples = points.shape[1]
    if not path:
        return float(samples)
    total = 0.0
    first = runtime.order[0]
    state = runtime.advance(runtime.start(), np.zeros(1, dtype=np.int64), first, np.array([runtime.sizes[first]]))
    waiting = [_Prefixes(0, state, np.ones(1), States(box), np.arange(samples), np.zeros(samples, dtype=np.int64))]
    while waiting:
        now = waiting.pop()
        position, step = path[now.place]
        size = runtime.sizes[position]
        masses, totals, in_range = _in_range(runtime.logits(now.state, position), now.states, step, size, skips)
        density = now.density * (in_range / totals)
        if now.place + 1 == len(path):
            total += float(density[now.rows].sum())
            continue
        symbols = choose(masses, in_range, points[now.place, now.samples], now.rows)
        if len(now.samples) == len(density):  # all have parted: nothing is left to share
            order = np.argsort(now.rows)
            own, symbols = now.samples[order], symbols[order]
            state = runtime.follow(now.state, position, symbols)
            states = now.states if step is None else now.states.advance(np.arange(len(own)), step, symbols, size)
            waiting.append(_Prefixes(now.place + 1, state, density, states, own, np.arange(len(own))))
            continue
        different, rows = np.unique(now.rows * (size + 1) + symbols, return_inverse=True)
        order = np.argsort(rows, kind="stable")
        for begin in range(0, len(different), TOGETHER):
            parents, taken = np.divmod(different[begin : begin + TOGETHER], size + 1)
            mine = order[slice(*np.searchsorted(rows[order], (begin, begin + TOGETHER)))]
            states = States(box, now.states.states[parents])
            if step is not None:
                states = now.states.advance(parents, step, taken, size)
            state = runtime.advance(now.state, parents, position, taken)
            waiting.append(
                _Prefixes(now.place + 1, state, density[parents], states, now.samples[mine], rows[mine] - begin)
            )
    return total


def _in_range(
    logits: Logits, states: States, step: Step | None, size: int, skips: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What may be drawn (K, symbols), in proportion; all of the mass (K,), and that of what may be drawn (K,).

    A path that has left a column's later positions free takes MASK there if it ``skips``, or else whatever is drawn.
    """
    masses = np.exp(logits - logits.max(axis=1, keepdims=True))  # (K, size)
    totals = masses.sum(axis=1)
    if step is None:
        return masses, totals, totals
    weights = states.weights(step, size)
    if not skips:
        free = states.states[:, step.filter] == FREE
        weights = np.where(free[:, None], np.arange(size + 1) < size, weights)
    allowed = np.concatenate([masses, totals[:, None]], axis=1) * weights  # MASK, if allowed, is all that is
    return allowed, totals, allowed.sum(axis=1)


def draw(masses: Logits, totals: Logits, rng: np.random.Generator) -> IntArray:
    """One symbol per row in proportion to ``masses`` (S, D). A row without mass gets symbol 0; its path is dead."""
    return choose(masses, totals, rng.random(len(masses)), np.arange(len(masses)))


def choose(masses: Logits, totals: Logits, points: FloatArray, rows: IntArray) -> IntArray:
    """For each of ``points``, which are in [0, 1), the symbol there among the ``masses`` (K, D) of its row."""
    thresholds = (points * totals[rows]).astype(masses.dtype)
    edges = np.cumsum(masses, axis=1)
    symbols: IntArray = np.empty(len(rows), dtype=np.int64)
    for begin in range(0, len(rows), TOGETHER):
        part = slice(begin, begin + TOGETHER)
        symbols[part] = np.count_nonzero(edges[rows[part]] <= thresholds[part, None], axis=1)
    np.minimum(symbols, masses.shape[1] - 1, out=symbols)
    for path in np.flatnonzero(masses[rows, symbols] <= 0):  # rounding went past the last with mass
        row = rows[path]
        symbols[path] = np.flatnonzero(masses[row] > 0)[-1] if totals[row] > 0 else 0
    return symbols
