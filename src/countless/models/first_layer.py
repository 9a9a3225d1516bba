"""The first layer as a sum of table rows: embedding and masked linear layer multiplied out, one table per position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from countless.spec import ModelSpec

TABLE_ROWS = 8_192  # most rows that exist at a time, unless one position alone has more


@dataclass(frozen=True)
class InputSlot:
    """Where one position's numbers lie, and the first unit that may see it."""

    position: int
    symbols: slice  # rows of the embedding, MASK included
    inputs: slice  # columns of the first layer's weight
    rows: slice  # within the stack
    start: int


@dataclass(frozen=True)
class Stack:
    """The tables of positions of neighbouring ranks, one above the other. Units before ``start`` see none of them."""

    slots: tuple[InputSlot, ...]
    positions: Tensor  # (k,)
    offsets: Tensor  # (k,) the first row of each position

    @classmethod
    def of(cls, slots: list[InputSlot]) -> Stack:
        positions = torch.tensor([slot.position for slot in slots])
        return cls(tuple(slots), positions, torch.tensor([slot.rows.start for slot in slots]))

    @property
    def rows(self) -> int:
        return int(self.slots[-1].rows.stop)

    @property
    def start(self) -> int:
        return self.slots[0].start  # slots are in the order of their ranks


def plan_stacks(spec: ModelSpec, order: int = 0) -> tuple[Stack, ...]:
    """Share the positions out, in the order of their ranks under one of the spec's orders."""
    firsts = np.cumsum([0, *(size + 1 for size in spec.sizes)]).tolist()
    stacks: list[Stack] = []
    slots: list[InputSlot] = []
    for rank, position in enumerate(spec.orders[order]):
        symbols = slice(firsts[position], firsts[position + 1])
        inputs = slice(position * spec.embedding, (position + 1) * spec.embedding)
        size = spec.sizes[position] + 1
        used = slots[-1].rows.stop if slots else 0
        if slots and used + size > TABLE_ROWS:
            stacks.append(Stack.of(slots))
            slots, used = [], 0
        start = int(np.searchsorted(spec.degrees, rank))
        slots.append(InputSlot(position, symbols, inputs, slice(used, used + size), start))
    return (*stacks, Stack.of(slots))


class FirstLayer(torch.autograd.Function):
    """``concat(E_p[x_p]) @ W.T + b`` as ``sum of T_p[x_p] + b``, where ``T_p = E_p @ W_p.T``.

    A table takes a product for each of its position's symbols, the plain layer one for each row of the batch. Units
    that may not see a position are left out of its product, so the layer's mask is not needed.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, stacks: tuple[Stack, ...], embedding: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        h = bias.repeat(len(inputs), 1)  # (B, H)
        looked_up = []
        for stack in stacks:
            tables = embedding.new_zeros(stack.rows, len(weight) - stack.start)
            for slot in stack.slots:
                table = tables[slot.rows, slot.start - stack.start :]
                torch.mm(embedding[slot.symbols], weight[slot.start :, slot.inputs].T, out=table)
            codes = inputs[:, stack.positions]  # (B, k)
            h[:, stack.start :] += F.embedding_bag(codes + stack.offsets, tables, mode="sum")
            looked_up.append(codes)
        ctx.save_for_backward(embedding, weight, *looked_up)
        ctx.stacks = stacks
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        embedding, weight, *looked_up = ctx.saved_tensors
        grad_embedding, grad_weight = torch.zeros_like(embedding), torch.zeros_like(weight)
        for stack, codes in zip(ctx.stacks, looked_up, strict=True):
            tables = _sum_by_row(codes, stack, grad[:, stack.start :].contiguous())
            for slot in stack.slots:
                table = tables[slot.rows, slot.start - stack.start :]
                torch.mm(table, weight[slot.start :, slot.inputs], out=grad_embedding[slot.symbols])
                torch.mm(table.T, embedding[slot.symbols], out=grad_weight[slot.start :, slot.inputs])
        return None, None, grad_embedding, grad_weight, grad.sum(0)


def _sum_by_row(codes: Tensor, stack: Stack, grad: Tensor) -> Tensor:
    """The gradient of the tables: for each table row, the sum of ``grad`` over the batch rows that looked it up.

    That is a sum of rows as well, once the batch rows are sorted by what they looked up. PyTorch's own backward pass
    takes several times as long, and NumPy sorts small numbers several times as fast.
    """
    small = codes.T.to(torch.int16 if stack.rows < 2**15 else torch.int64)  # (k, B)
    users = torch.from_numpy(np.argsort(small.numpy(), axis=1, kind="stable")).flatten()
    uses = torch.bincount((codes + stack.offsets).flatten(), minlength=stack.rows)
    return F.embedding_bag(users, grad, uses.cumsum(0) - uses, mode="sum")
