"""The engine's door: a region's density, by a named method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.engine.answer import Answer
from countless.engine.exact import exact
from countless.engine.paper import progressive, skipping
from countless.engine.particles import particles
from countless.engine.runtime import Runtime
from countless.errors import CountlessError
from countless.region import Box, Region

Method = Callable[[Runtime[Any], Box, int, np.random.Generator], Answer]

METHODS: dict[str, Method] = {
    "particles": particles,
    "skipping": skipping,
    "progressive": progressive,
    "exact": lambda runtime, box, budget, rng: exact(runtime, box),
}
DEFAULT_BUDGETS = {"particles": 256, "skipping": 1000, "progressive": 1000, "exact": 0}


@dataclass(frozen=True)
class Density:
    """A region's density, with the answer of each of its disjoint boxes."""

    value: float
    answers: tuple[Answer, ...]

    @property
    def exact(self) -> bool:
        """Whether no box was sampled."""
        return all(answer.exact for answer in self.answers)


def density(runtime: Runtime[Any], region: Region, method: str, budget: int | None, seed: int) -> Density:
    """The sum over the region's disjoint boxes, clipped to the bounds that its cover gives.

    Every box starts from the same random numbers, so that near-equal questions move together.
    """
    if method not in METHODS:
        raise CountlessError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    budget = DEFAULT_BUDGETS[method] if budget is None else budget
    if budget < 1 and method != "exact":
        raise CountlessError(f"the number of particles or samples must be at least 1, not {budget}")

    def ask(box: Box) -> Answer:
        return METHODS[method](runtime, box, budget, np.random.default_rng(seed))

    answers = tuple(ask(box) for box in region.boxes)
    value = sum(answer.density for answer in answers)
    if region.cover:
        parts = [ask(box).density for box in region.cover]
        value = min(max(value, *parts), sum(parts))
    return Density(min(1.0, max(0.0, value)), answers)
