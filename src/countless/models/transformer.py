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
    """Causal attention, then two linear layers. Each reads through a LayerNorm and adds to its input."""

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
            for layer in (self.out, self.down):  # start near the identity, however deep
                layer.weight.mul_(1.0 / math.sqrt(2 * spec.blocks))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self._attention(self.qkv(self.attention_norm(x))))
        update: Tensor = self.down(F.relu(self.up(self.feed_norm(x))))
        return x + update

    def _attention(self, qkv: Tensor) -> Tensor:
        strings, tokens, width = qkv.shape
        queries, keys, values = qkv.view(strings, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).float()
        with torch.autocast(qkv.device.type, enabled=False):  # in half precision its gradient is far slower
            mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return mixed.transpose(1, 2).reshape(strings, tokens, width // 3)


class RowContextEncoder(nn.Module):
    """Turns the known symbols of a row into the *shift*: a vector for each text column, added to its tokens.

    Every symbol of every position has an embedding, MASK too. Their sum goes through one hidden layer, and also past
    it.
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
        """The shifts (rows, columns, width) of ``symbols`` (rows, positions)."""
        units = F.embedding_bag(symbols + self.first, self.embedding, mode="sum") + self.bias
        shift: Tensor = self.out(F.relu(units)) + self.direct(units)
        return shift.view(len(symbols), self.columns, -1)


class Transformer(nn.Module):
    r"""An autoregressive model of a string's symbols :math:`x_0, x_1, \dots`, END included.

    .. math:: p(x_m, x_{m+1}, \dots \mid \text{MASK}_m) = \prod_{i \ge m} p(x_i \mid \text{MASK}_m, x_m, \dots, x_{i-1})

    One MASK token at position :math:`m` stands for all :math:`m` unknown symbols before it. Only their number is known,
    so one token says as much as many, and a string that begins with a gap costs only its rest.

    A token's input is the embedding of its character plus those of the n-grams that end in it: the last few characters
    say most about the next one, and a lookup is cheaper than layers. The character embeddings are the output layer too.
    A model with a context also reads the known symbols of the string's row. One network reads the strings of all text
    columns of a table; the embedding of a token's position tells the column. ``spec`` describes the sizes
    (:class:`~countless.spec.SharedTextSpec`).
    """

    def __init__(self, spec: SharedTextSpec) -> None:
        super().__init__()
        self.spec = spec
        columns = [spec.column(index) for index in range(len(spec.lengths))]
        self._ids = [torch.tensor(column.hash_ids) for column in columns]  # a column's symbols -> the network's
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
        """The shift (rows, columns, width) of ``rows`` (rows, positions), which is added to every token.

        Without ``rows``, it is that of one row in which everything is MASK.
        """
        assert self.context is not None, "the model has no context"
        shift: Tensor = self.context(torch.tensor([self.spec.context]) if rows is None else rows)
        return shift

    def forward(self, tokens: Tensor, positions: Tensor, shift: Tensor | None = None, column: int = 0) -> Tensor:
        """Logits (strings, tokens, symbols) of the symbol after each token of strings of ``column``.

        ``tokens`` and the logits are in the column's own symbols; ``positions`` has the position of each token.
        ``shift`` (strings, width) is that of the strings' rows; without it nothing is known of the rows.
        """
        column_ids, biases = self._ids[column], slice(*self._biases[column : column + 2])
        ids = column_ids[tokens]  # the network's symbols
        x = F.embedding(ids, self.embedding) + F.embedding(positions + self._positions[column], self.positions)
        if self.spec.grams:  # one lookup in all tables: otherwise each gradient would be copied into the large one
            firsts = self.spec.buckets * torch.arange(len(self.spec.grams))
            rows = torch.stack(gram_buckets(ids, self.spec)) + firsts[:, None, None]
            x = x + F.embedding(rows, self.grams.flatten(0, 1)).sum(0)
        if self.context is not None:
            x = x + (self.shift()[:, column] if shift is None else shift)[:, None, :]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.final(x), self.embedding[column_ids[:-1]], self.bias[biases])

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, for the engine and the file."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}


def _starts(sizes: list[int]) -> list[int]:
    """The start of each part of these sizes, and the end of the last one."""
    return [0, *np.cumsum(sizes).tolist()]


def _random_positions(spec: SharedTextSpec) -> Tensor:
    """Initial embeddings of positions, similar within a column, and similar at the same position of other columns."""
    positions = 0.05 * torch.randn(max(spec.lengths) + 1, spec.width)
    columns = 0.05 * torch.randn(len(spec.lengths), spec.width) if len(spec.lengths) > 1 else torch.zeros(1, spec.width)
    return torch.cat([positions[: length + 1] + column for length, column in zip(spec.lengths, columns, strict=True)])


def gram_buckets(ids: Tensor, spec: SharedTextSpec) -> list[Tensor]:
    """For each length of n-grams, the bucket of the n-gram that ends in each token, padded with MASK.

    ``ids`` has the network's numbers of the tokens.
    """
    buckets = []
    hashes = torch.full_like(ids, HASH_START)
    for length in range(1, max(spec.grams, default=0) + 1):
        earlier = F.pad(ids, (length - 1, 0), value=spec.union[-1])[:, : ids.shape[1]]
        hashes = ((hashes ^ earlier) * HASH_PRIME) & 0xFFFFFFFF
        if length in spec.grams:
            buckets.append((hashes >> HASH_SHIFT) % spec.buckets)
    return buckets
