"""Data-parallel training: each worker computes the gradient of its share of every batch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Team:
    """A process that trains alone.

    >>> Team().summed(2.0, 3.0)
    [2.0, 3.0]
    """

    rank = 0
    size = 1

    @property
    def leads(self) -> bool:
        """Whether this process measures, saves checkpoints and returns the result."""
        return self.rank == 0

    def share(self, rows: Tensor) -> Tensor:
        """The rows of a batch that this process computes."""
        return rows[self.rank :: self.size]

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes."""

    def summed(self, *numbers: float) -> list[float]:
        """The sums of the numbers over all processes."""
        return list(numbers)


class ProcessGroup(Team):
    """The processes of torch's default process group, which must be initialised. ``threads`` are those of this one."""

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum. All are sent in one message, because each message takes time."""
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in trained]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for parameter, summed in zip(trained, torch.split(flat, [tensor.numel() for tensor in trained]), strict=True):
            parameter.grad = summed.view_as(parameter)

    def summed(self, *numbers: float) -> list[float]:
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor)
        sums: list[float] = tensor.tolist()
        return sums
