"""Output heads: which positions compute their logits together, and how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countless.spec import ModelSpec

FOLDED_SYMBOLS = 192  # most symbols of one folded head
WORTH = 1.5  # a folded position may take so many times the products: on its own it has more small operations


@dataclass(frozen=True)
class OutputSlot:
    """The slices of one position: in the embedding, in the output layer, and in its head's logits."""

    position: int
    symbols: slice  # rows of the embedding and of the bias, without MASK
    features: slice  # rows of the output layer
    logits: slice  # within the head
    cut: int  # the position reads the units before this one


@dataclass(frozen=True)
class FoldedHead:
    """Positions of few symbols. Output layer and embedding are multiplied into one matrix from units to logits."""

    slots: tuple[OutputSlot, ...]
    positions: Tensor  # (k,)
    offsets: Tensor  # (k, 1) the first logit of each position

    @classmethod
    def of(cls, slots: list[OutputSlot]) -> FoldedHead:
        positions = torch.tensor([slot.position for slot in slots])
        return cls(tuple(slots), positions, torch.tensor([[slot.logits.start] for slot in slots]))

    @property
    def cut(self) -> int:
        return self.slots[-1].cut  # slots are in the order of their ranks

    @property
    def symbols(self) -> int:
        return int(self.slots[-1].logits.stop)

    @property
    def logit_slices(self) -> list[slice]:
        return [slot.logits for slot in self.slots]


@dataclass(frozen=True)
class Heads:
    """All positions: each is either in a folded head, or wide and on its own."""

    folded: tuple[FoldedHead, ...]
    wide: tuple[OutputSlot, ...]


def plan_heads(spec: ModelSpec, order: int = 0) -> Heads:
    """Group the positions by their ranks under one of the orders, so that those of a head read about the same units."""
    first_rows = np.cumsum([0, *(size + 1 for size in spec.sizes)]).tolist()
    folded: list[FoldedHead] = []
    wide: list[OutputSlot] = []
    slots: list[OutputSlot] = []
    for position, cut in zip(spec.orders[order], spec.cuts.tolist(), strict=True):
        size = spec.sizes[position]
        symbols = slice(first_rows[position], first_rows[position] + size)
        features = slice(position * spec.embedding, (position + 1) * spec.embedding)
        if size > FOLDED_SYMBOLS or not _folding_pays(size, cut, spec.embedding):
            wide.append(OutputSlot(position, symbols, features, slice(0, size), cut))
            continue
        used = slots[-1].logits.stop if slots else 0
        if used + size > FOLDED_SYMBOLS:
            folded.append(FoldedHead.of(slots))
            slots, used = [], 0
        slots.append(OutputSlot(position, symbols, features, slice(used, used + size), cut))
    if slots:
        folded.append(FoldedHead.of(slots))
    return Heads(tuple(folded), tuple(wide))


def _folding_pays(size: int, cut: int, embedding: int) -> bool:
    """Whether the folded matrix takes about as few products as the two separate layers."""
    return size * cut <= WORTH * embedding * (size + cut)
