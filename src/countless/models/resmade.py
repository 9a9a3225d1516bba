"""ResMADE: a residual masked autoencoder for distribution estimation, with a MASK token per position."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.errors import TrainingError
from countless.spec import ModelSpec


class MaskedLinear(nn.Module):
    """A linear layer whose weight is multiplied by a fixed 0/1 mask.

    The masked weight is computed at every call and never cached, so the layer keeps learning.
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        outputs, inputs = mask.shape
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.register_buffer("mask", mask, persistent=False)
        fan_in = mask.sum(1, keepdim=True).clamp(min=1)
        with torch.no_grad():
            self.weight.normal_().mul_(mask * (2.0 / fan_in).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.mask, self.bias)


class Block(nn.Module):
    """``h + W2 relu(W1 relu(h))``, both masked so that a unit sees units of at most its own degree."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.inner = MaskedLinear(mask)
        self.outer = MaskedLinear(mask)
        with torch.no_grad():
            self.outer.weight.mul_(0.1)  # start near the identity

    def forward(self, h: Tensor) -> Tensor:
        update: Tensor = self.outer(F.relu(self.inner(F.relu(h))))
        return h + update


class ResMADE(nn.Module):
    r"""An autoregressive model of symbols :math:`x_1, \dots, x_n`, one per position.

    .. math:: \log p(x) = \sum_i \log p(x_i \mid x_{<i})

    Each position has an embedding table with one row per symbol and one for its MASK token. The same rows, less
    MASK, are the output layer (tied embeddings). Layers are masked as :class:`~countless.spec.ModelSpec` says.

    Reference: Germain et al., *MADE*, 2015; Durkan and Nash, *Autoregressive Energy Machines*, 2019.

    >>> model = ResMADE(ModelSpec(sizes=(3, 2), hidden=8, blocks=1, embedding=4))
    >>> codes = torch.tensor([[2, 0], [1, 1]])
    >>> model.log_prob(codes, codes).shape  # one log-probability per row and position
    torch.Size([2, 2])
    """

    offsets: Tensor
    mask_codes: Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        if len(spec.orders) != 1:
            raise TrainingError("this version trains a model with exactly one order of its positions")
        self.spec = spec
        sizes = torch.tensor(spec.sizes)
        width = spec.embedding
        degrees = torch.from_numpy(spec.degrees)  # (H,)
        ranks = torch.from_numpy(spec.ranks()).repeat_interleave(width)  # (n*E,)

        rows = sizes + 1
        self.register_buffer("offsets", rows.cumsum(0) - rows, persistent=False)  # first row of each position
        self.register_buffer("mask_codes", sizes, persistent=False)
        self.embedding = nn.Parameter(torch.randn(int(rows.sum()), width) / math.sqrt(width))
        self.first = MaskedLinear((degrees[:, None] >= ranks[None, :]).float())  # (H, n*E)
        hidden_mask = (degrees[:, None] >= degrees[None, :]).float()  # (H, H)
        self.blocks = nn.ModuleList(Block(hidden_mask) for _ in range(spec.blocks))
        self.out = MaskedLinear((degrees[None, :] < ranks[:, None]).float())  # (n*E, H)
        self.bias = nn.Parameter(torch.zeros(int(rows.sum())))  # the MASK rows are never used

    def start_from_marginals(self, counts: list[NDArray[np.int64]]) -> None:
        """Set the output biases so that the untrained model starts from each position's own frequencies."""
        with torch.no_grad():
            for position, count in enumerate(counts):
                probs = torch.from_numpy((count + 0.5) / (count.sum() + 0.5 * len(count)))
                self.bias[self._symbols(position)] = probs.log().float()

    def hidden(self, inputs: Tensor) -> Tensor:
        """Output features of every position, (B, n, E), given input codes (B, n) in which MASK may stand."""
        x = F.embedding(inputs + self.offsets, self.embedding).flatten(1)  # (B, n*E)
        h = self.first(x)
        for block in self.blocks:
            h = block(h)
        out: Tensor = self.out(F.relu(h))
        return out.view(len(out), len(self.spec.sizes), self.spec.embedding)

    def logits(self, features: Tensor, position: int) -> Tensor:
        """Logits of one position's symbols, (B, size), from :meth:`hidden`'s features."""
        symbols = self._symbols(position)
        return F.linear(features[:, position], self.embedding[symbols], self.bias[symbols])

    def log_prob(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Log-probability of each target given the inputs of earlier rank, (B, n), in nats."""
        features = self.hidden(inputs)
        losses = [
            F.cross_entropy(self.logits(features, position), targets[:, position], reduction="none")
            for position in range(len(self.spec.sizes))
        ]
        return -torch.stack(losses, 1)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights as the engine reads them: masks multiplied in, float32."""
        with torch.no_grad():
            arrays: dict[str, Tensor] = {"embedding": self.embedding, "bias": self.bias}
            for name, layer in self.named_modules():
                if isinstance(layer, MaskedLinear):
                    arrays[f"{name}.weight"] = layer.weight * layer.mask
                    arrays[f"{name}.bias"] = layer.bias
            return {name: array.detach().numpy().astype(np.float32) for name, array in arrays.items()}

    def _symbols(self, position: int) -> slice:
        start = int(self.offsets[position])
        return slice(start, start + self.spec.sizes[position])
