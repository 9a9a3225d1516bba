"""The training task protocol: what the training loop needs to know of a model and its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.spec import ModelSpec, SharedTextSpec

Inputs = Literal["as trained", "masked", "unmasked"]  # how a model is measured: with which of its inputs masked


class Task(Protocol):
    """A model and the rows that it learns.

    Losses and bits are per *unit*: a row of a table, a character of a text.
    """

    unit: str
    rows: int
    epochs: int | None  # passes over the rows; None when only the time budget ends the run
    batch: int  # rows per step
    window: int | None  # rows that are gone through together, since they lie in a file; None when all are in memory

    @property
    def spec(self) -> ModelSpec | SharedTextSpec:
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

    def learn(self, rows: Tensor, generator: torch.Generator, fraction: float, weight: float) -> float:
        """Give the parameters the gradients of ``weight`` times the nats per unit of these rows, and return that loss.

        Inputs are masked at random; ``fraction`` of the run is over. Gradients from before are replaced.
        """
        ...

    def bits(self, rows: Tensor, inputs: Inputs, generator: torch.Generator) -> float:
        """Bits per unit of these rows, without gradients."""
        ...

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name."""
        ...


def start_from(model: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give ``model`` the weights that another of the same description had, by their names in a model file."""
    model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()})


BITS = 1.0 / float(np.log(2.0))


def stream(seed: int, *numbers: int) -> torch.Generator:
    """An independent stream of random numbers for each seed and numbers."""
    mixed = int(np.random.SeedSequence([seed, *numbers]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(mixed & (2**63 - 1))
