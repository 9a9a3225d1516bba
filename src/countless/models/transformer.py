"""A causal Transformer over characters, with a MASK token for any number of unknown characters."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from countless.spec import SharedTextSpec

HASH_START, HASH_PRIME, HASH_SHIFT = 2166136261, 16777619, 7  # as in the engine


class TransformerBlock(nn.Module):
    """Attention to the tokens so far, then two linear layers; each adds to what it reads through a LayerNorm."""

    def __init__(self, spec: SharedTextSpec) -> None:
        super().__init__()
        self.heads = spec.heads
        self.attention_norm = nn.LayerNorm(spec.width)
        self.qkv = nn.Linear(spec.width, 3 * spec.width)
        self.out = nn.Linear(spec.width, spec.width)
        self.feed_norm = nn.LayerNorm(spec.width)
        self.up = nn.Linear(spec.width, spec.inner)
        self.down = nn.Linear(spec.inner, spec.width)
        with torch.no_grad():
            for last in (self.out, self.down):  # start near the identity, however deep
                last.weight.mul_(1.0 / math.sqrt(2 * spec.blocks))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self._attention(self.qkv(self.attention_norm(x))))
        update: Tensor = self.down(F.relu(self.up(self.feed_norm(x))))
        return x + update

    def _attention(self, qkv: Tensor) -> Tensor:
        strings, tokens, width = qkv.shape
        queries, keys, values = qkv.view(strings, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).float()
        with torch.autocast(qkv.device.type, enabled=False):  # in half precision its gradient takes far longer
            mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return mixed.transpose(1, 2).reshape(strings, tokens, width // 3)


class RowContextEncoder(nn.Module):
    """What is known of a row, as a vector for each text column that is added to every token of its string: the *shift*.

    Every symbol of every position has an embedding, MASK too. Their sum goes through one hidden layer, and past it.
    """

    def __init__(self, spec: SharedTextSpec) -> None:
        super().__init__()
        rows = torch.tensor(spec.context) + 1
        self.first = rows.cumsum(0) - rows  # the embedding of each position's symbol 0
        self.columns = len(spec.lengths)
        scale = 0.1 / math.sqrt(len(spec.context))
        self.embedding = nn.Parameter(scale * torch.randn(int(rows.sum()), spec.context_width))
        self.bias = nn.Parameter(torch.zeros(spec.context_width))
        self.out = nn.Linear(spec.context_width, self.columns * spec.width, bias=False)
        self.direct = nn.Linear(spec.context_width, self.columns * spec.width, bias=False)

    def forward(self, symbols: Tensor) -> Tensor:
        """The shifts (rows, columns, width) of each row (rows, positions)."""
        units = F.embedding_bag(symbols + self.first, self.embedding, mode="sum") + self.bias
        shift: Tensor = self.out(F.relu(units)) + self.direct(units)
        return shift.view(len(symbols), self.columns, -1)


class Transformer(nn.Module):
    r"""An autoregressive model of a string's symbols :math:`x_0, x_1, \dots`, END included.

    .. math:: p(x_m, x_{m+1}, \dots \mid \text{MASK}_m) = \prod_{i \ge m} p(x_i \mid \text{MASK}_m, x_m, \dots, x_{i-1})

    One MASK token at position :math:`m` stands for all :math:`m` symbols before. They hold nothing but their number,
    so to attend to each of them would tell no more, and a string that begins with a gap costs what is left of it.

    Besides its character's embedding a token has those of the n-grams that end in it: most of what decides the next
    character is in the last few, and a lookup is cheaper than layers. The character embeddings are the output layer
    too. A model with a context also takes what is known of the string's row. One network reads the strings of all text
    columns of a table: the embedding of a token's position says of which. ``spec`` describes the sizes
    (:class:`~countless.spec.SharedTextSpec`).
    """

    def __init__(self, spec: SharedTextSpec) -> None:
        super().__init__()
        self.spec = spec
        columns = [spec.column(index) for index in range(len(spec.lengths))]
        self._ids = [torch.tensor(column.hash_ids) for column in columns]  # own symbol -> the network's
        self._positions = _starts([column.length + 1 for column in columns])
        self._biases = _starts([column.symbols for column in columns])
        self.embedding = nn.Parameter(0.05 * torch.randn(len(spec.union), spec.width))
        self.positions = nn.Parameter(_random_positions(spec))
        self.grams = nn.Parameter(0.05 * torch.randn(len(spec.grams), spec.buckets, spec.width))
        self.bias = nn.Parameter(torch.zeros(self._biases[-1]))
        self.context = RowContextEncoder(spec) if spec.context else None
        self.blocks = nn.ModuleList(TransformerBlock(spec) for _ in range(spec.blocks))
        self.final = nn.LayerNorm(spec.width)

    def shift(self, rows: Tensor | None = None) -> Tensor:
        """What the rows (rows, positions) add to every token of their strings, (rows, columns, width).

        Without any, there is one row of nothing but MASK.
        """
        assert self.context is not None, "the model has no context"
        shift: Tensor = self.context(torch.tensor([self.spec.context]) if rows is None else rows)
        return shift

    def forward(self, tokens: Tensor, positions: Tensor, shift: Tensor | None = None, column: int = 0) -> Tensor:
        """Logits (strings, tokens, symbols) of what follows each token of strings of ``column``.

        ``tokens`` and the logits are in the column's own symbols; ``positions`` has the place of each token. ``shift``
        (strings, width) is what their rows add; without it nothing is known of them.
        """
        ids, biases = self._ids[column], slice(*self._biases[column : column + 2])
        known = ids[tokens]  # the network's symbols
        x = F.embedding(known, self.embedding) + F.embedding(positions + self._positions[column], self.positions)
        if self.spec.grams:  # all tables as one: the gradient of each would be copied to that of all, which is large
            firsts = self.spec.buckets * torch.arange(len(self.spec.grams))
            rows = torch.stack(gram_buckets(known, self.spec)) + firsts[:, None, None]
            x = x + F.embedding(rows, self.grams.flatten(0, 1)).sum(0)
        if self.context is not None:
            x = x + (self.shift()[:, column] if shift is None else shift)[:, None, :]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.final(x), self.embedding[ids[:-1]], self.bias[biases])

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, for the engine and the file."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}


def _starts(sizes: list[int]) -> list[int]:
    """Where each of several parts of these sizes begins, and where the last one ends."""
    return [0, *np.cumsum(sizes).tolist()]


def _random_positions(spec: SharedTextSpec) -> Tensor:
    """First embeddings of positions: alike within a column, and alike at one position of several columns."""
    places = 0.05 * torch.randn(max(spec.lengths) + 1, spec.width)
    columns = 0.05 * torch.randn(len(spec.lengths), spec.width) if len(spec.lengths) > 1 else torch.zeros(1, spec.width)
    return torch.cat([places[: length + 1] + column for length, column in zip(spec.lengths, columns, strict=True)])


def gram_buckets(known: Tensor, spec: SharedTextSpec) -> list[Tensor]:
    """For each length of n-grams, the bucket of the one that ends in each token. Before a string there is MASK.

    ``known`` has the network's numbers of the tokens.
    """
    found = []
    hashes = torch.full_like(known, HASH_START)
    for length in range(1, max(spec.grams, default=0) + 1):
        back = F.pad(known, (length - 1, 0), value=spec.union[-1])[:, : known.shape[1]]
        hashes = ((hashes ^ back) * HASH_PRIME) & 0xFFFFFFFF
        if length in spec.grams:
            found.append((hashes >> HASH_SHIFT) % spec.buckets)
    return found
