"""The protocol of a network that models columns."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn


class ColumnsNetwork(nn.Module, ABC):
    """An autoregressive model over the positions of a spec."""

    @abstractmethod
    def log_prob(self, inputs: Tensor, targets: Tensor, order: int = 0) -> Tensor:
        """Log-probability of each target (B, n) given the inputs of earlier rank, in nats.

        Symbol ``sizes[p]`` among the inputs is the MASK token of position ``p``. Ranks are those of one of the orders.
        """

    def start_from_marginals(self, counts: list[NDArray[np.int64]]) -> None:
        """Start from the frequencies of each position's symbols, if the network supports that."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, as its runtime reads them."""
