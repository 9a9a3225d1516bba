"""The ideas that are compared: each is a name, what it is, and the options of a fit that make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import countless

NETWORK = ("hidden", "blocks", "embedding", "units")  # options that describe the network


@dataclass(frozen=True)
class Idea:
    """Options of :func:`countless.fit` that differ from ``base``; those of the network are named like the others."""

    name: str
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """What to call :func:`countless.fit` with."""
        network = {name: value for name, value in self.options.items() if name in NETWORK}
        others = {name: value for name, value in self.options.items() if name not in NETWORK}
        return {**others, "network": countless.Network(**network)} if network else others


U = {"batch": 256, "units": "entropy"}
_ALL = (
    Idea("base", "the paper's batch and network", {"batch": 2048, "hidden": 256, "blocks": 3, "embedding": 32}),
    Idea("batch-1024", "", {"batch": 1024}),
    Idea("batch-512", "", {"batch": 512}),
    Idea("batch-256", "", {"batch": 256}),
    Idea("batch-512-rate-1e-3", "", {"batch": 512, "learning_rate": 1e-3}),
    Idea("batch-512-rate-4e-3", "", {"batch": 512, "learning_rate": 4e-3}),
    Idea("batch-512-wide", "", {"batch": 512, "hidden": 512, "blocks": 2}),
    Idea("batch-512-wider", "", {"batch": 512, "hidden": 512, "blocks": 1}),
    Idea("batch-512-thin-embedding", "", {"batch": 512, "embedding": 16}),
    Idea("batch-512-thick-embedding", "", {"batch": 512, "embedding": 64}),
    Idea("batch-512-shallow", "", {"batch": 512, "blocks": 1}),
    Idea("smooth", "", {"batch": 512, "training": {"smooth": 0.8}}),
    Idea("averaged", "", {"batch": 512, "training": {"averaging": 0.05}}),
    Idea("units-entropy", "", {"batch": 512, "units": "entropy"}),
    Idea("falling", "", {"batch": 512, "order": "falling"}),
    Idea("rising", "", {"batch": 512, "order": "rising"}),
    Idea("falling-units", "", {"batch": 512, "order": "falling", "units": "entropy"}),
    Idea("rising-units", "", {"batch": 512, "order": "rising", "units": "entropy"}),
    Idea("u256", "", {**U}),
    Idea("u256-rising", "", {**U, "order": "rising"}),
    Idea("u256-falling", "", {**U, "order": "falling"}),
    Idea("u256-wide", "", {**U, "hidden": 512, "blocks": 2}),
    Idea("u256-smooth", "", {**U, "training": {"smooth": 0.8}}),
    Idea("u256-rate-1e-3", "", {**U, "learning_rate": 1e-3}),
    Idea("u256-rate-4e-3", "", {**U, "learning_rate": 4e-3}),
    Idea("u256-shallow", "", {**U, "blocks": 2}),
    Idea("u256-wide-shallow", "", {**U, "hidden": 512, "blocks": 1}),
    Idea("u256-rising-smooth", "", {**U, "order": "rising", "training": {"smooth": 0.8}}),
    Idea("u256-thick", "", {**U, "embedding": 64}),
    Idea("u256-averaged", "", {**U, "training": {"averaging": 0.02}}),
)

IDEAS = {idea.name: idea for idea in _ALL}
