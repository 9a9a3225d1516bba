"""The engine's door: the densities of regions, by a named method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.engine.answer import Answer
from countless.engine.budget import adaptive, fixed
from countless.engine.exact import exact
from countless.engine.paper import progressive, skipping
from countless.engine.runtime import Runtime
from countless.errors import CountlessError
from countless.region import Box, Region

Method = Callable[[Runtime[Any], Sequence[Box], int | None, int], list[Answer]]
Sampler = Callable[[Runtime[Any], Box, int, np.random.Generator], Answer]

PAPER_SAMPLES = 1000


@dataclass(frozen=True)
class Density:
    """A region's density, with the answer of each of its disjoint boxes."""

    value: float
    answers: tuple[Answer, ...]

    @property
    def exact(self) -> bool:
        """Whether no box was sampled."""
        return all(answer.exact for answer in self.answers)


def densities(
    runtime: Runtime[Any], regions: Sequence[Region], method: str, budget: int | None, seed: int
) -> list[Density]:
    """Each region's density: the sum over its disjoint boxes, clipped to the bounds that its cover gives.

    ``budget`` is a number of particles or samples; None is the method's own choice.
    """
    if method not in METHODS:
        raise CountlessError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if budget is not None and budget < 1:
        raise CountlessError(f"the number of particles or samples must be at least 1, not {budget}")
    boxes = [box for region in regions for box in (*region.boxes, *region.cover)]
    answers = iter(METHODS[method](runtime, boxes, budget, seed))
    return [_density(region, answers) for region in regions]


def _density(region: Region, answers: Any) -> Density:
    parts = tuple(next(answers) for _ in region.boxes)
    value = sum(answer.density for answer in parts)
    bounds = [next(answers).density for _ in region.cover]
    if bounds:
        value = min(max(value, *bounds), sum(bounds))
    return Density(min(1.0, max(0.0, value)), parts)


def _particles(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
    return adaptive(runtime, boxes, seed) if budget is None else fixed(runtime, boxes, budget, seed)


def _one_by_one(sampler: Sampler) -> Method:
    """The paper's samplers know one box at a time. Every box starts from the same random numbers."""

    def answer(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
        samples = PAPER_SAMPLES if budget is None else budget
        return [sampler(runtime, box, samples, np.random.default_rng(seed)) for box in boxes]

    return answer


METHODS: dict[str, Method] = {
    "particles": _particles,
    "skipping": _one_by_one(skipping),
    "progressive": _one_by_one(progressive),
    "exact": lambda runtime, boxes, budget, seed: [exact(runtime, box) for box in boxes],
}
