"""Which inputs of each training row are replaced by MASK tokens.

The paper draws the *number* of masked positions uniformly and then that many positions at random; it compares
this with a fixed probability per position, and with no masking at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from countless.errors import TrainingError


class Masking(Protocol):
    """A scheme that draws masks: ``True`` where the input becomes MASK."""

    @property
    def name(self) -> str:
        """How the scheme is written in options and reports."""
        ...

    def draw(self, rows: int, positions: int, generator: torch.Generator) -> Tensor:
        """Masks of shape (rows, positions)."""
        ...


@dataclass(frozen=True)
class UniformMasking:
    """The paper's scheme: for each row, the number of masked positions is uniform on [0, positions)."""

    name: str = "uniform"

    def draw(self, rows: int, positions: int, generator: torch.Generator) -> Tensor:
        count = torch.randint(positions, (rows, 1), generator=generator)
        shuffled = torch.rand(rows, positions, generator=generator).argsort(1).argsort(1)
        return shuffled < count


@dataclass(frozen=True)
class FixedMasking:
    """Every position is masked on its own with the same probability."""

    probability: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise TrainingError(f"a masking probability lies between 0 and 1, not {self.probability}")

    @property
    def name(self) -> str:
        return f"{self.probability:g}"

    def draw(self, rows: int, positions: int, generator: torch.Generator) -> Tensor:
        return torch.rand(rows, positions, generator=generator) < self.probability


@dataclass(frozen=True)
class NoMasking:
    """Nothing is masked: the model for plain progressive sampling."""

    name: str = "none"

    def draw(self, rows: int, positions: int, generator: torch.Generator) -> Tensor:
        return torch.zeros(rows, positions, dtype=torch.bool)


def parse_masking(text: str) -> Masking:
    """The scheme that ``text`` names: ``uniform``, ``none``, or a probability such as ``0.5``.

    >>> parse_masking("0.25")
    FixedMasking(probability=0.25)
    """
    if text == "uniform":
        return UniformMasking()
    if text == "none":
        return NoMasking()
    try:
        return FixedMasking(float(text))
    except ValueError:
        raise TrainingError(f"unknown masking {text!r}: use uniform, none, or a probability such as 0.5") from None
