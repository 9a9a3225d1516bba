"""The particle budget of a box: as many particles as bring its sampling error down to the target.

A first walk with a few particles answers many boxes exactly, because nothing needed thinning. For the others it tells
its own sampling error: thinning knows with which chance it kept each particle, and the walk sees how much hangs on
those that it kept by luck. If that is too much, a fresh walk with more particles is the answer. Boxes that begin alike
share their walk; where a box has hints, they guide it.

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
from countless.engine.answer import Answer, Effort
from countless.engine.columns.particles import particles
from countless.engine.columns.runtime import Runtime
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import Box

LEAST, MOST = 64, 512  # particles; between them the number doubles
TARGET = 0.2  # the relative standard error that sampling may add: less than a good model's own (docs/sampler.md)


def adaptive(runtime: Runtime[Any], boxes: Sequence[Box], seed: int) -> list[Answer]:
    """The answer of every box, each with the particles it needs."""
    hinted = any(box.hints is not None for box in boxes)
    population = Population(runtime, boxes, seed, hinted)
    answers = population.walk(LEAST)
    wanted: dict[int, list[int]] = {}
    for index, answer in enumerate(answers):
        budget = particles_for(answer.sampling_error or 0.0)
        if budget > LEAST:
            wanted.setdefault(budget, []).append(index)
    for budget, indices in wanted.items():
        alone = len(indices) == len(boxes)
        again = population if alone else Population(runtime, [boxes[index] for index in indices], seed, hinted)
        for index, answer in zip(indices, again.walk(budget, stream=1), strict=True):
            answers[index] = replace(answer, forward_rows=answers[index].forward_rows + answer.forward_rows)
    return answers


@lru_cache(maxsize=64)
def effort(budget: int | None, seed: int, count: int) -> Effort:
    """That of :func:`fixed`, or of :func:`adaptive` if the ``budget`` is None, in a model of ``count`` positions."""
    least, most = (LEAST, MOST) if budget is None else (budget, budget)
    return Effort(least, most, TARGET, offsets(seed, 0, count), offsets(seed, 1, count))


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


def particles_for(error: float) -> int:
    """How many particles bring the first walk's relative ``error`` down to the target: a power of two.

    >>> particles_for(0.0), particles_for(0.3), particles_for(math.inf)
    (64, 256, 512)
    """
    budget = LEAST
    while budget < MOST and error * math.sqrt(LEAST / budget) > TARGET:
        budget *= 2
    return budget
