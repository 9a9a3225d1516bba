"""The network of :mod:`tests.plugin`: it needs PyTorch, and is imported only when a model is trained."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.models.network import ColumnsNetwork
from countless.spec import ModelSpec


class Pairwise(ColumnsNetwork):
    """Logits of a position: its own bias, and a table looked up for each earlier position's symbol."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        rows = [size + 1 for size in spec.sizes]
        self.starts = [sum(rows[:position]) for position in range(len(rows))]
        self.pairs = nn.Parameter(torch.randn(sum(rows), sum(rows)) * 0.1)
        self.bias = nn.Parameter(torch.zeros(sum(rows)))

    def log_prob(self, inputs: Tensor, targets: Tensor, order: int = 0) -> Tensor:
        ranks = torch.from_numpy(self.spec.ranks(order))
        looked_up = self.pairs[inputs + torch.tensor(self.starts)]  # (B, n, rows)
        log_probs = []
        for position, size in enumerate(self.spec.sizes):
            symbols = slice(self.starts[position], self.starts[position] + size)
            logits = looked_up[:, ranks < ranks[position], symbols].sum(1) + self.bias[symbols]
            log_probs.append(logits.log_softmax(1).gather(1, targets[:, position : position + 1]))
        return torch.cat(log_probs, 1)

    def start_from_marginals(self, counts: list[NDArray[np.int64]]) -> None:
        with torch.no_grad():
            for start, count in zip(self.starts, counts, strict=True):
                shares = torch.from_numpy((count + 0.5) / (count.sum() + 0.5 * len(count)))
                self.bias[start : start + len(count)] = shares.log().float()

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return {"pairs": self.pairs.detach().numpy(), "bias": self.bias.detach().numpy()}
