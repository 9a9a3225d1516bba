"""The training task protocol: what the training loop needs to know of a model and its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.spec import ModelSpec, SharedTextSpec

Inputs = Literal["as trained", "masked", "unmasked"]  # which inputs are masked when a model is measured


class Task(Protocol):
    """A model and the rows that it learns.

    Losses and bits are per *unit*: a row of a table, a character of a text.
    """

    unit: str
    rows: int
    epochs: int | None  # passes over the rows; None when only the time budget ends the run
    batch: int  # rows per step
    window: int | None  # rows that are visited together, because they are in a file; None if all are in memory

    @property
    def spec(self) -> ModelSpec | SharedTextSpec:
        """The model's description."""
        ...

    @property
    def model(self) -> nn.Module:
        """The network."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """What must be the same in a checkpoint, besides the options."""
        ...

    def learn(self, rows: Tensor, generator: torch.Generator, fraction: float, weight: float) -> float:
        """Set the gradients of ``weight`` times the nats per unit of these rows, and return that loss.

        Inputs are masked at random; ``fraction`` of the run is over. Old gradients are replaced.
        """
        ...

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        """Bits per unit of these rows. Computes no gradients."""
        ...

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name."""
        ...


def start_from(model: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Load the weights of another model with the same spec, by their names in a model file."""
    model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()})


BITS = 1.0 / float(np.log(2.0))


def stream(seed: int, *numbers: int) -> torch.Generator:
    """An independent stream of random numbers for each seed and numbers."""
    mixed = int(np.random.SeedSequence([seed, *numbers]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(mixed & (2**63 - 1))
