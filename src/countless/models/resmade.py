"""ResMADE: a residual masked autoencoder for distribution estimation, with a MASK token per position."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.models.network import ColumnsNetwork
from countless.spec import ModelSpec

SMOOTH_FROM = 16  # positions with fewer symbols do not start smooth
MOST_WAVES = 64


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


class OrderedLinear(nn.Module):
    """A linear layer with a 0/1 mask for each order and, if there are several, a signal that distinguishes them.

    The paper's signal is a second weight under the same mask, whose input is all ones. Here inputs that are unmasked
    together under every order share one weight: the same functions with far fewer parameters. ``masks`` is (orders,
    outputs, inputs), ``unmasked`` (orders, outputs, groups of inputs).
    """

    masks: Tensor
    unmasked: Tensor

    def __init__(self, masks: Tensor, unmasked: Tensor) -> None:
        super().__init__()
        _, outputs, inputs = masks.shape
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.signal = nn.Parameter(torch.zeros(unmasked.shape[1:])) if len(masks) > 1 else None
        self.register_buffer("masks", masks, persistent=False)
        self.register_buffer("unmasked", unmasked, persistent=False)
        fan_in = masks.float().mean(0).sum(1, keepdim=True).clamp(min=1)
        with torch.no_grad():
            self.weight.normal_().mul_(masks.any(0) * (2.0 / fan_in).sqrt())

    def bias_under(self, order: int) -> Tensor:
        """The bias and the signal of ``order``."""
        return self.bias if self.signal is None else self.bias + (self.signal * self.unmasked[order]).sum(1)

    def forward(self, x: Tensor, order: int) -> Tensor:
        return F.linear(x, self.weight * self.masks[order], self.bias_under(order))


class ResidualBlock(nn.Module):
    """``h + W2 relu(W1 relu(h))``, both masked so that a unit reads units of at most its own degree."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.inner = MaskedLinear(mask)
        self.outer = MaskedLinear(mask)
        with torch.no_grad():
            self.outer.weight.mul_(0.1)  # start near the identity

    def forward(self, h: Tensor) -> Tensor:
        update: Tensor = self.outer(F.relu(self.inner(F.relu(h))))
        return h + update


class ResMADE(ColumnsNetwork):
    r"""An autoregressive model of symbols :math:`x_1, \dots, x_n`, one per position.

    .. math:: \log p(x) = \sum_i \log p(x_i \mid x_{<i})

    Each position has an embedding table with one row per symbol and one for its MASK token. The same rows, less
    MASK, are the output layer (tied embeddings). Layers are masked as :class:`~countless.spec.ModelSpec` says.

    If there are several orders, each call uses one: ``order`` is its index in the spec. Units are sorted by degree
    under each order, so orders differ only in the first and the output layer, which have a signal of the order.

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
        self.spec = spec
        sizes = torch.tensor(spec.sizes)
        width = spec.embedding
        degrees = torch.from_numpy(spec.degrees)  # (H,)
        ranks = torch.stack([torch.from_numpy(spec.ranks(order)) for order in range(len(spec.orders))])  # (orders, n)
        features = ranks.repeat_interleave(width, 1)  # (orders, n*E)

        rows = sizes + 1
        self.register_buffer("offsets", rows.cumsum(0) - rows, persistent=False)  # first row of each position
        self.register_buffer("mask_codes", sizes, persistent=False)
        self.embedding = nn.Parameter(torch.randn(int(rows.sum()), width) / math.sqrt(width))
        self.first = OrderedLinear(  # (H, n*E)
            degrees[None, :, None] >= features[:, None, :], degrees[None, :, None] >= ranks[:, None, :]
        )
        hidden_mask = (degrees[:, None] >= degrees[None, :]).float()  # (H, H)
        self.blocks = nn.ModuleList(ResidualBlock(hidden_mask) for _ in range(spec.blocks))
        every_degree = torch.arange(len(spec.sizes) - 1)
        self.out = OrderedLinear(  # (n*E, H)
            degrees[None, None, :] < features[:, :, None], every_degree[None, None, :] < features[:, :, None]
        )
        self.bias = nn.Parameter(torch.zeros(int(rows.sum())))  # the MASK rows are never used

    def start_from_marginals(self, counts: list[NDArray[np.int64]]) -> None:
        """Set the output biases so that the untrained model starts from each position's own frequencies."""
        with torch.no_grad():
            for position, count in enumerate(counts):
                probs = torch.from_numpy((count + 0.5) / (count.sum() + 0.5 * len(count)))
                self.bias[self._symbols(position)] = probs.log().float()

    def start_smooth(self, share: float) -> None:
        """Start with similar embeddings of adjacent symbols: a smooth curve has ``share`` of their variance."""
        width = self.spec.embedding
        with torch.no_grad():
            for position, size in enumerate(self.spec.sizes):
                if size < SMOOTH_FROM:
                    continue
                symbols = self._symbols(position)
                points = (torch.arange(size) + 0.5) / size
                waves = torch.arange(1, min(size, MOST_WAVES) + 1)
                curves = torch.cos(math.pi * points[:, None] * waves) @ (
                    torch.randn(len(waves), width) / waves[:, None]
                )
                curves *= (width * curves.square().mean()).rsqrt()
                self.embedding[symbols] = (1 - share) ** 0.5 * self.embedding[symbols] + share**0.5 * curves

    def hidden(self, inputs: Tensor, order: int = 0) -> Tensor:
        """Output features of every position, (B, n, E), given input codes (B, n) that may contain MASK."""
        return self.features(F.embedding(inputs + self.offsets, self.embedding), order)

    def features(self, embedded: Tensor, order: int = 0) -> Tensor:
        """The same, given the embedded inputs (B, n, E)."""
        h = self.first(embedded.flatten(1), order)
        for block in self.blocks:
            h = block(h)
        out: Tensor = self.out(F.relu(h), order)
        return out.view(len(out), len(self.spec.sizes), self.spec.embedding)

    def logits(self, features: Tensor, position: int) -> Tensor:
        """Logits of one position's symbols, (B, size), from :meth:`hidden`'s features."""
        symbols = self._symbols(position)
        return F.linear(features[:, position], self.embedding[symbols], self.bias[symbols])

    def log_prob(self, inputs: Tensor, targets: Tensor, order: int = 0) -> Tensor:
        """Log-probability of each target given the inputs of earlier rank, (B, n), in nats."""
        features = self.hidden(inputs, order)
        losses = [
            F.cross_entropy(self.logits(features, position), targets[:, position], reduction="none")
            for position in range(len(self.spec.sizes))
        ]
        return -torch.stack(losses, 1)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights as the engine reads them, in float32. Weights that are masked under every order are zero."""
        with torch.no_grad():
            arrays: dict[str, Tensor] = {"embedding": self.embedding, "bias": self.bias}
            for name, layer in self.named_modules():
                if isinstance(layer, MaskedLinear | OrderedLinear):
                    mask = layer.mask if isinstance(layer, MaskedLinear) else layer.masks.any(0)
                    arrays[f"{name}.weight"] = layer.weight * mask
                    arrays[f"{name}.bias"] = layer.bias
                if isinstance(layer, OrderedLinear) and layer.signal is not None:
                    arrays[f"{name}.signal"] = layer.signal
            return {name: array.detach().numpy().astype(np.float32) for name, array in arrays.items()}

    def _symbols(self, position: int) -> slice:
        start = int(self.offsets[position])
        return slice(start, start + self.spec.sizes[position])
