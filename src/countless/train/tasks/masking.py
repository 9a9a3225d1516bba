"""Input masking: which inputs of each training row are replaced by MASK tokens.

The paper draws the *number* of masked columns uniformly, then that many columns at random. It compares this with a
fixed probability per column, and with no masking.

A column of several positions, such as the digits of a large code, is also masked after some leading positions, because
a query often filters the leading digit and skips the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countless.options import NO_MASKING, UNIFORM
from countless.spec import ModelSpec

WORKLOAD_SHARE = 0.5  # this share of a step's rows is masked as for the workload's queries,
WORKLOAD_FROM = 0.7  # after this share of the run


class Masking(ABC):
    """A scheme that draws masks: ``True`` where the input becomes MASK."""

    masks_trailing = True  # whether later positions of an unmasked column may be masked

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the scheme in options and reports."""

    @abstractmethod
    def draw(self, rows: int, columns: int, generator: torch.Generator) -> Tensor:
        """Masks of whole columns, (rows, columns)."""

    def draw_positions(self, rows: int, spec: ModelSpec, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Masks of positions, and which positions count in the loss; both (rows, positions).

        A position counts unless the previous position of its column is masked: no query filters a digit without its
        leading digits.
        """
        return self._with_digits(self.draw(rows, len(spec.groups), generator), spec, generator)

    def _with_digits(self, columns: Tensor, spec: ModelSpec, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Masks of positions from masks of whole columns; later positions of unmasked columns may be masked too."""
        rows = len(columns)
        widths, depths = torch.tensor(spec.groups), torch.from_numpy(spec.depths)
        column_of = torch.repeat_interleave(torch.arange(len(spec.groups)), widths)
        mask = columns[:, column_of]
        if self.masks_trailing and int(widths.max()) > 1:
            unmasked_positions = (
                1 + (torch.rand(rows, len(spec.groups), generator=generator) * widths).long()
            )  # 1 to all of them
            mask |= depths >= unmasked_positions[:, column_of]
        counts = (depths == 0) | ~mask.roll(1, dims=1)
        return mask, counts


@dataclass(frozen=True)
class UniformMasking(Masking):
    """The paper's scheme: for each row, the number of masked columns is uniform on [0, columns).

    With ``everything`` it is uniform on [0, columns]: sometimes all columns are masked.
    """

    everything: bool = False

    @property
    def name(self) -> str:
        return "uniform"

    def draw(self, rows: int, columns: int, generator: torch.Generator) -> Tensor:
        count = torch.randint(columns + self.everything, (rows, 1), generator=generator)
        keys = torch.rand(rows, columns, generator=generator)
        ordered = torch.from_numpy(np.sort(keys.numpy(), axis=1))  # several times as fast as PyTorch's
        threshold = ordered.gather(1, count.clamp(max=columns - 1))
        return (keys < threshold) | (count == columns)  # the columns with the smallest keys


@dataclass(frozen=True)
class FixedMasking(Masking):
    """Every column is masked on its own with the same probability."""

    probability: float

    @property
    def name(self) -> str:
        return f"{self.probability:g}"

    def draw(self, rows: int, columns: int, generator: torch.Generator) -> Tensor:
        return torch.rand(rows, columns, generator=generator) < self.probability


class NoMasking(Masking):
    """Nothing is masked: the model for plain progressive sampling."""

    masks_trailing = False

    @property
    def name(self) -> str:
        return "none"

    def draw(self, rows: int, columns: int, generator: torch.Generator) -> Tensor:
        return torch.zeros(rows, columns, dtype=torch.bool)


class WorkloadMasking(Masking):
    """Masks as for the queries of a workload in a share of the rows; in the other rows those of ``base``.

    ``column_sets`` has how often the queries filter each set of columns. In the first share of rows, the columns of one
    set are unmasked and all others masked, as when the query is answered; only the columns of the set count.
    """

    def __init__(self, base: Masking, column_sets: Mapping[tuple[int, ...], float], columns: int) -> None:
        self.base = base
        self._masks = torch.ones(len(column_sets), columns, dtype=torch.bool)
        for mask, columns_of_set in zip(self._masks, column_sets, strict=True):
            mask[[*columns_of_set]] = False
        weights = torch.tensor([*column_sets.values()], dtype=torch.float64)
        self._ends = (weights / weights.sum()).cumsum(0)

    @property
    def name(self) -> str:
        return f"{self.base.name}+workload"

    def draw(self, rows: int, columns: int, generator: torch.Generator) -> Tensor:
        indices = torch.searchsorted(self._ends, torch.rand(rows, generator=generator, dtype=torch.float64), right=True)
        return self._masks[indices.clamp(max=len(self._masks) - 1)]

    def draw_positions(self, rows: int, spec: ModelSpec, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        workload_rows = round(WORKLOAD_SHARE * rows)
        columns = self.draw(workload_rows, len(spec.groups), generator)
        mask, counts = self._with_digits(columns, spec, generator)
        counts &= ~columns.repeat_interleave(torch.tensor(spec.groups), dim=1)
        base_masks = self.base.draw_positions(rows - workload_rows, spec, generator)
        return torch.cat([mask, base_masks[0]]), torch.cat([counts, base_masks[1]])


def parse_masking(text: str) -> Masking:
    """The scheme of :attr:`~countless.options.TrainingOptions.masking`.

    >>> parse_masking("0.25")
    FixedMasking(probability=0.25)
    """
    if text == UNIFORM:
        return UniformMasking()
    return NoMasking() if text == NO_MASKING else FixedMasking(float(text))
