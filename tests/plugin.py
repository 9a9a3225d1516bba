"""A kind of model and a method that the package does not have: what docs/extending.md walks through.

Importing this module registers both, so that the contracts of models and of methods, and the exhibits, take them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.engine.answer import Answer
from countless.engine.checked_arrays import checked
from countless.engine.columns.plan import States, walk
from countless.engine.columns.row_runtime import RowsRuntime
from countless.engine.columns.runtime import Logits, Runtime, State, softmax
from countless.engine.methods import METHODS, Method, first_order, one_by_one
from countless.estimator.fitting.model_kinds import KINDS, Kind
from countless.region import Box
from countless.spec import ModelSpec


class PairwiseRuntime(RowsRuntime):
    """Logits are sums of tables, one for each pair of a position and an earlier one."""

    def __init__(self, spec: ModelSpec, arrays: Mapping[str, NDArray[Any]], order: int = 0) -> None:
        super().__init__(spec.sizes, spec.orders[order])
        rows = sum(spec.sizes) + len(spec.sizes)
        weights = checked(arrays, {"pairs": (rows, rows), "bias": (rows,)})
        self._pairs, self._bias = weights["pairs"], weights["bias"]
        self._starts = np.cumsum([0, *(size + 1 for size in spec.sizes)])
        self._ranks = spec.ranks(order)

    def conditional(self, codes: IntArray, position: int) -> Logits:
        earlier = np.flatnonzero(self._ranks < self._ranks[position])
        symbols = slice(self._starts[position], self._starts[position] + self.sizes[position])
        looked_up = self._pairs[codes[:, earlier] + self._starts[earlier], symbols]  # (S, earlier, size)
        logits: Logits = looked_up.sum(axis=1) + self._bias[symbols]
        return logits


def stratified(runtime: Runtime[State], box: Box, samples: int, rng: np.random.Generator) -> Answer:
    """Skipping whose paths share out the unit interval at every step instead of each drawing from all of it."""
    state, mass, states = runtime.start(), np.ones(1), States(box)
    parents = np.zeros(samples, dtype=np.int64)
    density = np.ones(samples)
    steps = walk(box, runtime.order)
    for step in steps:
        size = runtime.sizes[step.position]
        probs = np.ones((len(mass), size + 1))
        probs[:, :size] = softmax(runtime.logits(state, step.position))
        probs = (probs * states.weights(step, size))[parents]
        in_range = probs.sum(axis=1)
        density *= in_range
        places = (rng.permutation(samples) + rng.random(samples)) / samples * in_range
        symbols = np.minimum((np.cumsum(probs, axis=1) <= places[:, None]).sum(axis=1), size)
        symbols = np.where(probs[np.arange(samples), symbols] > 0, symbols, probs.argmax(axis=1))
        state = runtime.advance(state, parents, step.position, symbols)
        states = states.advance(parents, step, symbols, size)
        parents, mass = np.arange(samples), np.ones(samples)
    rows = samples * len(steps)
    return Answer(float(density.mean()), not steps, samples, tuple(step.position for step in steps), rows)


KINDS["pairwise"] = Kind("tests.pairwise:Pairwise", PairwiseRuntime)
METHODS["stratified"] = Method(first_order(one_by_one(stratified)))
