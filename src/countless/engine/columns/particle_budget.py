"""The particle budget of a box: as many particles as bring its sampling error down to the target.

A first walk with few particles answers many boxes exactly, because nothing needed thinning. For the others it estimates
its own sampling error from the chance with which each particle survived and the mass of its children. If the error is
too large, a second walk with more particles gives the answer. Boxes that start with the same steps share them, and a
box with hints uses them.

The random numbers depend on the seed alone, so the same box always gets the same answer.
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
from countless.engine.answer import Answer, Effort
from countless.engine.columns.particles import particles
from countless.engine.columns.runtime import Runtime
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import Box

LEAST, MOST = 64, 512  # particles of a walk; the number is doubled from the one up to the other
TARGET = 0.2  # relative standard error that sampling may add: less than that of a good model (docs/sampler.md)


def adaptive(runtime: Runtime[Any], boxes: Sequence[Box], seed: int) -> list[Answer]:
    """The answer of every box, with as many particles as each needs."""
    hinted = any(box.hints is not None for box in boxes)
    population = Population(runtime, boxes, seed, hinted)
    answers = population.walk(LEAST)
    indices_by_budget: dict[int, list[int]] = {}
    for index, answer in enumerate(answers):
        budget = particles_for(answer.sampling_error or 0.0)
        if budget > LEAST:
            indices_by_budget.setdefault(budget, []).append(index)
    for budget, indices in indices_by_budget.items():
        is_whole_batch = len(indices) == len(boxes)
        retry = population if is_whole_batch else Population(runtime, [boxes[index] for index in indices], seed, hinted)
        for index, answer in zip(indices, retry.walk(budget, stream=1), strict=True):
            answers[index] = replace(answer, forward_rows=answers[index].forward_rows + answer.forward_rows)
    return answers


@lru_cache(maxsize=64)
def effort(budget: int | None, seed: int, count: int) -> Effort:
    """The effort of :func:`fixed`, or of :func:`adaptive` if ``budget`` is None, for a model of ``count`` positions."""
    least, most = (LEAST, MOST) if budget is None else (budget, budget)
    return Effort(least, most, TARGET, offsets(seed, 0, count), offsets(seed, 1, count))


class Population:
    """Boxes that particles walk, in compiled code if the model has it."""

    def __init__(self, runtime: Runtime[Any], boxes: Sequence[Box], seed: int, hinted: bool = False) -> None:
        self._runtime, self._boxes, self._seed, self._hinted = runtime, boxes, seed, hinted
        self._ready = None if runtime.kernel is None else runtime.kernel.plan(boxes, hinted)

    def walk(self, budget: int, stream: int = 0, power: float = THINNING_POWER) -> list[Answer]:
        """The answer of every box with ``budget`` particles. Each ``stream`` has its own random numbers."""
        check_cancelled()
        step_offsets = offsets(self._seed, stream, len(self._runtime.sizes))
        if self._ready is not None:
            return self._ready.walk(budget, power, step_offsets)
        return [particles(self._runtime, box, budget, step_offsets, power, self._hinted) for box in self._boxes]


def fixed(
    runtime: Runtime[Any],
    boxes: Sequence[Box],
    budget: int,
    seed: int,
    stream: int = 0,
    power: float = THINNING_POWER,
    hinted: bool = False,
) -> list[Answer]:
    """The answer of every box with ``budget`` particles. If ``hinted``, boxes that have hints use them."""
    hinted = hinted and any(box.hints is not None for box in boxes)
    return Population(runtime, boxes, seed, hinted).walk(budget, stream, power)


@lru_cache(maxsize=64)
def offsets(seed: int, stream: int, count: int) -> FloatArray:
    """One random number for each step. All boxes use the same, so that the errors of similar questions are alike."""
    return np.random.default_rng([seed, stream]).random(count)


def particles_for(error: float) -> int:
    """The number of particles, a power of two, that brings the first walk's relative ``error`` down to the target.

    >>> particles_for(0.0), particles_for(0.3), particles_for(math.inf)
    (64, 256, 512)
    """
    budget = LEAST
    while budget < MOST and error * math.sqrt(LEAST / budget) > TARGET:
        budget *= 2
    return budget
