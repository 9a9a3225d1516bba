"""What the training loop must know of a model and its data, and no more."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.spec import ModelSpec, TextSpec

Inputs = Literal["as trained", "masked", "unmasked"]  # how a model is measured: with which of its inputs masked


class Task(Protocol):
    """A model and the rows that it learns.

    Losses and bits are per *unit*: a row of a table, a character of a text.
    """

    unit: str
    rows: int
    epochs: int | None  # passes over the rows; None when only the time budget ends the run
    batch: int  # rows per step

    @property
    def spec(self) -> ModelSpec | TextSpec:
        """The model's description."""
        ...

    @property
    def model(self) -> nn.Module:
        """What is trained."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree on, besides the options."""
        ...

    def loss(self, rows: Tensor, generator: torch.Generator, fraction: float) -> Tensor:
        """Nats per unit of these rows, with inputs masked at random, when ``fraction`` of the run is over."""
        ...

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        """Bits per unit of these rows, without gradients."""
        ...

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name."""
        ...


BITS = 1.0 / float(np.log(2.0))


def stream(seed: int, number: int) -> torch.Generator:
    """An independent stream of random numbers for each (seed, number)."""
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(mixed & (2**63 - 1))
