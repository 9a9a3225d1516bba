"""The particle budget of a box: as many particles as bring its sampling error down to the target.

A first walk with a few particles answers most boxes exactly, because nothing needed thinning. For the others, a pilot
of a few small independent populations tells how far apart their answers lie, and from that how many particles bring
the sampling error down to the target. If the first walk had that many, it is the answer; if not, a fresh walk is. No
walk judges itself: one that missed the mass looks confident. The first walk is shared by boxes that begin alike. Where
a box has hints, they guide the pilot and the fresh walk, which is then the answer in any case.

Everything follows from the seed, so the same box always gets the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.cancellation import check_cancelled
from countless.engine.answer import Answer
from countless.engine.columns.particles import particles
from countless.engine.columns.runtime import Runtime
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import Box

LEAST, MOST = 128, 512  # particles; between them the number doubles
TARGET = 0.1  # the relative standard error that sampling may add: less than a good model's own (docs/sampler.md)
PILOT, REPLICATES = 16, 3  # particles of a pilot's population, and how many populations


def adaptive(runtime: Runtime[Any], boxes: Sequence[Box], seed: int) -> list[Answer]:
    """The answer of every box, each with the particles it needs."""
    answers = Population(runtime, boxes, seed).walk(LEAST)
    sampled = [index for index, answer in enumerate(answers) if not answer.exact]
    if not sampled:
        return answers
    population = Population(runtime, [boxes[index] for index in sampled], seed, hinted=True)
    pilots = [population.walk(PILOT, stream) for stream in range(1, REPLICATES + 1)]
    wanted: dict[int, list[int]] = {}
    for index, replicates in zip(sampled, zip(*pilots, strict=True), strict=True):
        spread = relative_error([answer.density for answer in replicates])
        budget = particles_for(spread)
        spent = answers[index].forward_rows + sum(answer.forward_rows for answer in replicates)
        answers[index] = replace(answers[index], forward_rows=spent, sampling_error=spread * math.sqrt(PILOT / budget))
        if budget > LEAST or boxes[index].hints is not None:
            wanted.setdefault(budget, []).append(index)
    for budget, indices in wanted.items():
        fresh = Population(runtime, [boxes[index] for index in indices], seed, hinted=True).walk(budget, REPLICATES + 1)
        for index, answer in zip(indices, fresh, strict=True):
            spent = answers[index].forward_rows + answer.forward_rows
            error = None if answer.exact else answers[index].sampling_error
            answers[index] = replace(answer, forward_rows=spent, sampling_error=error)
    return answers


class Population:
    """Boxes to be walked by particles, in machine code if the model has it."""

    def __init__(self, runtime: Runtime[Any], boxes: Sequence[Box], seed: int, hinted: bool = False) -> None:
        self._runtime, self._boxes, self._seed, self._hinted = runtime, boxes, seed, hinted
        self._ready = None if runtime.kernel is None else runtime.kernel.plan(boxes, hinted)

    def walk(self, budget: int, stream: int = 0, power: float = THINNING_POWER) -> list[Answer]:
        """The answer of every box with ``budget`` particles; each ``stream`` is independent of the others."""
        check_cancelled()
        numbers = offsets(self._seed, stream, len(self._runtime.sizes))
        if self._ready is not None:
            return self._ready.walk(budget, power, numbers)
        return [particles(self._runtime, box, budget, numbers, power, self._hinted) for box in self._boxes]


def fixed(
    runtime: Runtime[Any],
    boxes: Sequence[Box],
    budget: int,
    seed: int,
    stream: int = 0,
    power: float = THINNING_POWER,
    hinted: bool = False,
) -> list[Answer]:
    """The answer of every box with ``budget`` particles; if ``hinted``, those that have hints take them."""
    hinted = hinted and any(box.hints is not None for box in boxes)
    return Population(runtime, boxes, seed, hinted).walk(budget, stream, power)


@lru_cache(maxsize=64)
def offsets(seed: int, stream: int, count: int) -> FloatArray:
    """One random number for each step. Every box takes the same ones, so that near-equal questions move together."""
    return np.random.default_rng([seed, stream]).random(count)


def relative_error(densities: Sequence[float]) -> float:
    """The standard error of one of these independent answers, relative to their mean.

    >>> relative_error([1.0, 1.0]), relative_error([0.0, 0.0]), round(relative_error([1.0, 3.0]), 2)
    (0.0, inf, 0.71)
    """
    mean = float(np.mean(densities))
    return float(np.std(densities, ddof=1)) / mean if mean > 0 else math.inf


def particles_for(error: float) -> int:
    """How many particles bring a pilot's relative ``error`` down to the target: a power of two between the bounds.

    >>> particles_for(0.0), particles_for(0.4), particles_for(math.inf)
    (128, 256, 512)
    """
    budget = LEAST
    while budget < MOST and error * math.sqrt(PILOT / budget) > TARGET:
        budget *= 2
    return budget
