"""The paper's samplers, as the paper has them: independent paths, one forward pass a position.

They are kept plain on purpose. Benchmarks compare against them as they are here.
"""

from __future__ import annotations

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Answer
from countless.engine.runtime import Runtime, State, softmax
from countless.engine.walk import States, Step, walk
from countless.region import Box


def progressive(runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator) -> Answer:
    """Progressive sampling: every position up to the last constrained one is sampled, constrained or not."""
    steps = {step.position: step for step in walk(box, runtime.order)}
    last = max((runtime.order.index(position) for position in steps), default=-1)
    return _sample(
        runtime, box, [(position, steps.get(position)) for position in runtime.order[: last + 1]], samples, rng
    )


def skipping(runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator) -> Answer:
    """Progressive sampling with variable skipping: unconstrained positions are MASK and never sampled."""
    return _sample(runtime, box, [(step.position, step) for step in walk(box, runtime.order)], samples, rng)


def _sample(
    runtime: Runtime[State], box: Box, path: list[tuple[int, Step | None]], samples: int, rng: np.random.Generator
) -> Answer:
    """The mean over ``samples`` paths of the product of in-range probabilities along the path."""
    codes = np.tile(np.array(runtime.sizes), (samples, 1))  # (S, positions), all MASK
    density = np.ones(samples)
    states = States(box, np.repeat(States(box).states, samples, axis=0))
    everyone = np.arange(samples)
    for position, step in path:
        size = runtime.sizes[position]
        probs = np.ones((samples, size + 1))
        probs[:, :size] = softmax(runtime.conditional(codes, position))
        if step is None:
            probs[:, size] = 0.0
        else:
            probs *= states.weights(step, size)
        in_range = probs.sum(axis=1)  # (S,)
        density *= in_range
        symbols = draw(probs, in_range, rng)
        codes[:, position] = symbols
        if step is not None:
            states = states.advance(everyone, step, symbols, size)
    visited = tuple(position for position, _ in path)
    return Answer(
        float(density.mean()), exact=not path, particles=samples, visited=visited, forward_rows=samples * len(path)
    )


def draw(masses: FloatArray, totals: FloatArray, rng: np.random.Generator) -> IntArray:
    """One symbol per row in proportion to ``masses`` (S, D). A row without mass gets symbol 0; its path is dead."""
    thresholds = rng.random(len(masses)) * totals
    symbols = (np.cumsum(masses, axis=1) <= thresholds[:, None]).sum(axis=1)
    last_allowed = masses.shape[1] - 1 - np.argmax(masses[:, ::-1] > 0, axis=1)
    return np.where(totals > 0, np.minimum(symbols, last_allowed), 0)
