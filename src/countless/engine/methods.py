"""The registry of sampling methods. A method computes densities of boxes with the column model, and of text filters.

An entry added to :data:`METHODS` is a new method everywhere: docs/extending.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from countless.engine.answer import Answer
from countless.engine.columns.enumeration import exact
from countless.engine.columns.particle_budget import adaptive, fixed
from countless.engine.columns.runtime import Runtime
from countless.engine.paper.columns import progressive, skipping
from countless.engine.text import methods as text
from countless.engine.text.methods import TextMethod
from countless.errors import UnsupportedQueryError
from countless.region import Box

Orders = Sequence[Runtime[Any]]  # one model: a runtime for each of its orders
Ask = Callable[[Orders, Sequence[Box], int | None, int], list[Answer]]  # orders, boxes, budget, seed
OneOrder = Callable[[Runtime[Any], Sequence[Box], int | None, int], list[Answer]]
Sampler = Callable[[Runtime[Any], Box, int, "np.random.Generator"], Answer]

PAPER_SAMPLES = 1000
FUSED = "fused"
MODEL_METHOD = "particles"  # the default among the methods that use the model alone
DEFAULT_METHOD = FUSED


@dataclass(frozen=True)
class Method:
    """A way to compute densities: its functions, and what it needs.

    ``columns`` answers boxes of columns, ``text`` filters of text columns; a method may have only one of them. A method
    that ``uses_evidence`` has neither: it counts evidence rows and joins them with the answer of :data:`MODEL_METHOD`.
    If a method ``uses_counts``, the counts that are stored beside the models bound and correct its answers, also those
    of text filters. A method that ``skips`` leaves positions at MASK, so its model must be trained to read MASK.
    ``several`` says that the method needs a model of several orders. The paper's exhibits show the methods that are
    ``compared``. ``own`` methods are Countless's; the others come from a plugin.
    """

    columns: Ask | None = None
    text: TextMethod | None = None
    uses_counts: bool = False
    uses_evidence: bool = False
    skips: bool = True
    several: bool = False
    compared: bool = True
    own: bool = False


def first_order(method: OneOrder) -> Ask:
    """The method, run on the model's first order alone."""
    return lambda orders, boxes, budget, seed: method(orders[0], boxes, budget, seed)


def every_order(method: OneOrder, several: bool = False) -> Ask:
    """The mean of the method over all orders, which share its budget. With ``several``, a single order is an error."""

    def answer(orders: Orders, boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
        if len(orders) == 1:
            if several:
                raise UnsupportedQueryError("the model knows one order only: fit it with --orders 10, or use skipping")
            return method(orders[0], boxes, budget, seed)
        share = None if budget is None else max(1, budget // len(orders))
        by_order = [method(runtime, boxes, share, seed + index) for index, runtime in enumerate(orders)]
        return [mean(answers) for answers in zip(*by_order, strict=True)]

    return answer


def one_by_one(sampler: Sampler) -> OneOrder:
    """A method from a sampler that takes one box at a time. The random numbers are the same for every box."""

    def answer(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
        samples = PAPER_SAMPLES if budget is None else budget
        return [sampler(runtime, box, samples, np.random.default_rng(seed)) for box in boxes]

    return answer


def mean(answers: Sequence[Answer]) -> Answer:
    """The mean of independent answers."""
    density = sum(answer.density for answer in answers) / len(answers)
    return Answer(
        density,
        all(answer.exact for answer in answers),
        sum(answer.particles for answer in answers),
        answers[0].visited,
        sum(answer.forward_rows for answer in answers),
        _error_of_mean(answers, density),
    )


def _error_of_mean(answers: Sequence[Answer], density: float) -> float | None:
    """The relative standard error of the mean, if it is known of every sampled answer."""
    errors = [0.0 if answer.exact else answer.sampling_error for answer in answers]
    known_errors = [error for error in errors if error is not None]
    if density == 0 or len(known_errors) < len(errors) or not any(known_errors):
        return None
    squares = sum((error * answer.density) ** 2 for error, answer in zip(known_errors, answers, strict=True))
    return math.sqrt(squares) / (len(answers) * density)


def _particles(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
    return adaptive(runtime, boxes, seed) if budget is None else fixed(runtime, boxes, budget, seed, hinted=True)


def _exact(runtime: Runtime[Any], boxes: Sequence[Box], budget: int | None, seed: int) -> list[Answer]:
    return [exact(runtime, box) for box in boxes]


_own = partial(Method, own=True)

METHODS = {
    FUSED: _own(uses_counts=True, uses_evidence=True, compared=False),
    MODEL_METHOD: _own(every_order(_particles), text.PARTICLES, uses_counts=True),
    "skipping": _own(first_order(one_by_one(skipping)), text.SKIPPING),
    "progressive": _own(first_order(one_by_one(progressive)), text.PROGRESSIVE, skips=False),
    "multi-order": _own(every_order(one_by_one(progressive), several=True), skips=False, several=True),
    "multi-order+skipping": _own(every_order(one_by_one(skipping), several=True), several=True),
    "exact": _own(every_order(_exact), text.EXACT, compared=False),
    "plain-skipping": _own(first_order(one_by_one(partial(skipping, plain=True))), compared=False),
    "plain-progressive": _own(first_order(one_by_one(partial(progressive, plain=True))), skips=False, compared=False),
    "naive": _own(text=text.NAIVE, skips=False, compared=False),
}


def uses_evidence(name: str) -> bool:
    """Whether the method ``name`` counts evidence rows. False for a name that is not registered."""
    return name in METHODS and METHODS[name].uses_evidence


def of_model() -> list[str]:
    """The names of the methods that use the model alone."""
    return [name for name, method in METHODS.items() if not method.uses_evidence]


def for_columns() -> dict[str, Ask]:
    """The methods that answer boxes of columns, by name."""
    return {name: method.columns for name, method in METHODS.items() if method.columns is not None}


def for_text() -> dict[str, TextMethod]:
    """The methods that answer text filters, by name."""
    return {name: method.text for name, method in METHODS.items() if method.text is not None}
