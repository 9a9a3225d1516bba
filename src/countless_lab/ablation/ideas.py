"""The ideas that an ablation compares. Each is a set of options of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import countless

NETWORK = ("hidden", "blocks", "embedding", "units")  # options that describe the network


@dataclass(frozen=True)
class Idea:
    """Options of :func:`countless.fit` that differ from the defaults, with those of the network among them."""

    name: str
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`countless.fit`."""
        network = {name: value for name, value in self.options.items() if name in NETWORK}
        fit_options = {name: value for name, value in self.options.items() if name not in NETWORK}
        return {**fit_options, "network": countless.Network(**network)} if network else fit_options


_PAPER = {
    "batch": 2048,
    "hidden": 256,
    "blocks": 3,
    "units": "even",
    "learning_rate": 2e-3,
    "schedule": "cosine",
}
_GENTLE = {"learning_rate": 2e-3, "batch": 512, "schedule": "cosine"}
_SMALL_STEPS = {"batch": 256, "hidden": 256, "blocks": 3, "learning_rate": 2e-3, "schedule": "cosine"}
_WIDE = {"hidden": 512, "blocks": 2}
_ALL = (
    Idea("default", "what a fit does by itself"),
    Idea("paper", "the paper's batch and network", _PAPER),
    Idea("batch-512", "a quarter of the paper's batch", {**_PAPER, "batch": 512}),
    Idea("batch-256", "an eighth of it", {**_PAPER, "batch": 256}),
    Idea("batch-512-wide", "and two blocks of 512 units", {**_PAPER, **_WIDE, "batch": 512}),
    Idea("units-512", "batch 512, units shared out by entropy", {**_SMALL_STEPS, "batch": 512}),
    Idea("units-256", "batch 256, units shared out by entropy", _SMALL_STEPS),
    Idea("rising", "and columns by rising entropy", {**_SMALL_STEPS, "order": "rising"}),
    Idea("falling", "or by falling entropy", {**_SMALL_STEPS, "order": "falling"}),
    Idea("smooth", "or embeddings that begin as smooth curves", {**_SMALL_STEPS, "smooth": 0.8}),
    Idea("wide", "or two blocks of 512 units", {**_SMALL_STEPS, **_WIDE}),
    Idea("thick", "or embeddings of 64", {**_SMALL_STEPS, "embedding": 64}),
    Idea("slow", "or half the learning rate", {**_SMALL_STEPS, "learning_rate": 1e-3}),
    Idea("fast", "or twice the learning rate", {**_SMALL_STEPS, "learning_rate": 4e-3}),
    Idea("gentle", "the default, at a learning rate of 0.002 along a cosine, in steps of 512", _GENTLE),
    Idea("cosine", "the default, along a cosine", {"schedule": "cosine"}),
)

IDEAS = {idea.name: idea for idea in _ALL}
