"""The paper's samplers: progressive sampling over independent paths, each a product of in-range probabilities.

A *plain* one is as the paper has it, a whole forward pass for each position, and the definition. The others walk: they
re-use what earlier positions have computed, and come to the same answers but for rounding, much sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Answer
from countless.engine.columns.plan import States, Step, walk
from countless.engine.columns.runtime import Logits, Runtime, State
from countless.region import FREE, Box

TOGETHER = 1000  # paths that are walked at a time: more do not fit the caches


def progressive(
    runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator, plain: bool = False
) -> Answer:
    """Progressive sampling: every position up to the last constrained one is sampled, constrained or not."""
    steps = {step.position: step for step in walk(box, runtime.order)}
    last = max((runtime.order.index(position) for position in steps), default=-1)
    path = [(position, steps.get(position)) for position in runtime.order[: last + 1]]
    return _sample(runtime, box, path, samples, rng, plain, skips=False)


def skipping(runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator, plain: bool = False) -> Answer:
    """Progressive sampling with variable skipping: unconstrained positions are MASK and never sampled."""
    path = [(step.position, step) for step in walk(box, runtime.order)]
    return _sample(runtime, box, path, samples, rng, plain, skips=True)


class Paths(Protocol):
    """Paths that grow by a symbol at a time."""

    def logits(self, position: int) -> Logits:
        """Logits (S, size) of ``position``."""
        ...

    def take(self, position: int, symbols: IntArray) -> None:
        """Each path takes its symbol at ``position``."""
        ...


class PlainPaths(Generic[State]):
    """Whole rows of symbols, and a whole forward pass for each position."""

    def __init__(self, runtime: Runtime[State], samples: int) -> None:
        self._runtime = runtime
        self._codes = np.tile(np.array(runtime.sizes), (samples, 1))  # (S, positions), all MASK

    def logits(self, position: int) -> Logits:
        return self._runtime.conditional(self._codes, position)

    def take(self, position: int, symbols: IntArray) -> None:
        self._codes[:, position] = symbols


class WalkingPaths(Generic[State]):
    """The runtime's own state, which keeps what is computed."""

    def __init__(self, runtime: Runtime[State], samples: int) -> None:
        self._runtime = runtime
        first = runtime.order[0]
        nothing = np.full(samples, runtime.sizes[first])  # MASK: the paths part later
        self._state = runtime.advance(runtime.start(), np.zeros(samples, dtype=np.int64), first, nothing)

    def logits(self, position: int) -> Logits:
        return self._runtime.logits(self._state, position)

    def take(self, position: int, symbols: IntArray) -> None:
        self._state = self._runtime.follow(self._state, position, symbols)


def _sample(
    runtime: Runtime[State],
    box: Box,
    path: Sequence[tuple[int, Step | None]],
    samples: int,
    rng: np.random.Generator,
    plain: bool,
    skips: bool,
) -> Answer:
    """The mean over ``samples`` paths of the product of in-range probabilities along the path."""
    density = 0.0
    for done in range(0, samples, TOGETHER):
        together = min(TOGETHER, samples - done)
        paths: Paths = PlainPaths(runtime, together) if plain else WalkingPaths(runtime, together)
        density += float(_products(runtime.sizes, box, path, paths, together, rng, skips).sum())
    visited = tuple(position for position, _ in path)
    return Answer(
        density / samples, exact=not path, particles=samples, visited=visited, forward_rows=samples * len(path)
    )


def _products(
    sizes: tuple[int, ...],
    box: Box,
    path: Sequence[tuple[int, Step | None]],
    paths: Paths,
    samples: int,
    rng: np.random.Generator,
    skips: bool,
) -> FloatArray:
    """Each path's product (S,) of in-range probabilities.

    A path that has left a column's later positions free takes MASK there if it ``skips``, or else whatever is drawn.
    """
    density = np.ones(samples)
    states = States(box, np.repeat(States(box).states, samples, axis=0))
    everyone = np.arange(samples)
    for position, step in path:
        size = sizes[position]
        logits = paths.logits(position)
        masses = np.exp(logits - logits.max(axis=1, keepdims=True))  # (S, size)
        totals = masses.sum(axis=1)
        if step is None:
            paths.take(position, draw(masses, totals, rng))
            continue
        weights = states.weights(step, size)
        if not skips:
            free = states.states[:, step.filter] == FREE
            weights = np.where(free[:, None], np.arange(size + 1) < size, weights)
        allowed = np.concatenate([masses, totals[:, None]], axis=1) * weights  # MASK, if allowed, is all that is
        in_range = allowed.sum(axis=1)
        density *= in_range / totals
        symbols = draw(allowed, in_range, rng)
        paths.take(position, symbols)
        states = states.advance(everyone, step, symbols, size)
    return density


def draw(masses: Logits, totals: Logits, rng: np.random.Generator) -> IntArray:
    """One symbol per row in proportion to ``masses`` (S, D). A row without mass gets symbol 0; its path is dead."""
    thresholds = (rng.random(len(masses)) * totals).astype(masses.dtype)
    passed = np.count_nonzero(np.cumsum(masses, axis=1) <= thresholds[:, None], axis=1)
    symbols: IntArray = np.minimum(passed, masses.shape[1] - 1).astype(np.int64)
    for row in np.flatnonzero(masses[np.arange(len(masses)), symbols] <= 0):  # rounding went past the last with mass
        symbols[row] = np.flatnonzero(masses[row] > 0)[-1] if totals[row] > 0 else 0
    return symbols
