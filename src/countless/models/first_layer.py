"""The first layer as a sum of table rows: embedding and masked linear layer multiplied out, one table per position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from countless.spec import ModelSpec

TABLE_SYMBOLS = 128  # most symbols of a position that has a table: it takes a product for each of them in every step
TABLE_ROWS = 8_192  # most rows of a stack


@dataclass(frozen=True)
class InputSlot:
    """Where one position's numbers lie, and the first unit that may see it."""

    position: int
    symbols: slice  # rows of the embedding, MASK included
    inputs: slice  # columns of the first layer's weight
    start: int


@dataclass(frozen=True)
class InputPlan:
    """Positions with a table, in stacks of neighbouring ranks, and those whose embeddings are multiplied."""

    stacks: tuple[tuple[InputSlot, ...], ...]
    wide: tuple[InputSlot, ...]


def plan_inputs(spec: ModelSpec, order: int = 0) -> InputPlan:
    """Share the positions out, in the order of their ranks under one of the spec's orders."""
    firsts = np.cumsum([0, *(size + 1 for size in spec.sizes)]).tolist()
    stacks: list[list[InputSlot]] = []
    wide: list[InputSlot] = []
    for rank, position in enumerate(spec.orders[order]):
        symbols = slice(firsts[position], firsts[position + 1])
        inputs = slice(position * spec.embedding, (position + 1) * spec.embedding)
        slot = InputSlot(position, symbols, inputs, int(np.searchsorted(spec.degrees, rank)))
        if spec.sizes[position] > TABLE_SYMBOLS:
            wide.append(slot)
        elif stacks and _fits(slot, stacks[-1]):
            stacks[-1].append(slot)
        else:
            stacks.append([slot])
    return InputPlan(tuple(map(tuple, stacks)), tuple(wide))


def _fits(slot: InputSlot, stack: list[InputSlot]) -> bool:
    rows = sum(_size(each) for each in stack)
    return rows + _size(slot) <= TABLE_ROWS


def _size(slot: InputSlot) -> int:
    return int(slot.symbols.stop - slot.symbols.start)


@dataclass(frozen=True)
class FirstTensors:
    """What the first layer is made of; or, of the same shapes, its gradients."""

    embedding: Tensor
    weight: Tensor


class FirstLayer:
    """``concat(E_p[x_p]) @ W.T`` as ``sum of T_p[x_p]``, where ``T_p = E_p @ W_p.T``, and its gradients.

    A table takes a product for each of its position's symbols, the plain layer one for each row of the batch: positions
    of many symbols are left to the latter. Units that may not see a position are left out of its product.
    """

    def __init__(self, plan: InputPlan, given: FirstTensors, grads: FirstTensors) -> None:
        self._parts: list[TableStack | WideInputs] = [TableStack(slots, given, grads) for slots in plan.stacks]
        if plan.wide:
            self._parts.append(WideInputs(plan.wide, given, grads))

    def add(self, inputs: Tensor, h: Tensor) -> None:
        """Add what the layer makes of ``inputs`` (B, n) to ``h`` (B, H)."""
        for part in self._parts:
            part.add(inputs, h)

    def backward(self, grad: Tensor) -> None:
        """Add up the gradients that follow from ``grad`` (B, H), for the inputs that were added last."""
        for part in self._parts:
            part.backward(grad)


class TableStack:
    """The tables of positions of neighbouring ranks, one above the other. Units before ``start`` see none of them."""

    def __init__(self, slots: tuple[InputSlot, ...], given: FirstTensors, grads: FirstTensors) -> None:
        self._start = slots[0].start  # slots are in the order of their ranks
        ends = np.cumsum([_size(slot) for slot in slots]).tolist()
        self._rows = ends[-1]
        self._positions = torch.tensor([slot.position for slot in slots])
        self._offsets = torch.tensor([0, *ends[:-1]])
        shape = self._rows, len(given.weight) - self._start
        self._tables, self._grads = given.weight.new_zeros(shape), given.weight.new_zeros(shape)
        self._forward, self._backward = [], []
        for slot, end in zip(slots, ends, strict=True):
            part = slice(end - _size(slot), end), slice(slot.start - self._start, None)
            weight = slice(slot.start, None), slot.inputs
            symbols, products = given.embedding[slot.symbols], given.weight[weight]
            self._forward.append((symbols, products.T, self._tables[part]))
            back = self._grads[part]
            self._backward.append(
                (back, back.T, products, symbols, grads.embedding[slot.symbols], grads.weight[weight])
            )

    def add(self, inputs: Tensor, h: Tensor) -> None:
        for symbols, products, table in self._forward:
            torch.mm(symbols, products, out=table)
        self._codes = inputs.index_select(1, self._positions) + self._offsets  # (B, k)
        h[:, self._start :] += F.embedding_bag(self._codes, self._tables, mode="sum")

    def backward(self, grad: Tensor) -> None:
        self._grads.copy_(_sum_by_row(self._codes, self._rows, grad[:, self._start :].contiguous()))
        for back, back_first, products, symbols, symbols_grad, weight_grad in self._backward:
            symbols_grad.addmm_(back, products)
            torch.mm(back_first, symbols, out=weight_grad)


class WideInputs:
    """Positions of many symbols: those of the batch are looked up and multiplied."""

    def __init__(self, slots: tuple[InputSlot, ...], given: FirstTensors, grads: FirstTensors) -> None:
        self._embedding, self._embedding_grad = given.embedding, grads.embedding
        self._positions = torch.tensor([slot.position for slot in slots])
        self._firsts = torch.tensor([slot.symbols.start for slot in slots])
        self._starts = [slot.start for slot in slots]
        weights = [(slice(slot.start, None), slot.inputs) for slot in slots]
        self._products = [given.weight[weight] for weight in weights]
        self._products_first = [products.T for products in self._products]
        self._grads = [grads.weight[weight] for weight in weights]

    def add(self, inputs: Tensor, h: Tensor) -> None:
        self._rows = inputs.index_select(1, self._positions) + self._firsts  # (B, k)
        self._embedded = F.embedding(self._rows.T, self._embedding)  # (k, B, E)
        for start, symbols, products in zip(self._starts, self._embedded, self._products_first, strict=True):
            h[:, start:].addmm_(symbols, products)

    def backward(self, grad: Tensor) -> None:
        back = torch.empty_like(self._embedded)
        for start, symbols, symbols_grad, products, weight_grad in zip(
            self._starts, self._embedded, back, self._products, self._grads, strict=True
        ):
            seers = grad[:, start:]
            torch.mm(seers, products, out=symbols_grad)
            torch.mm(seers.T, symbols, out=weight_grad)
        self._embedding_grad.index_add_(0, self._rows.T.flatten(), back.flatten(0, 1))


def _sum_by_row(codes: Tensor, rows: int, grad: Tensor) -> Tensor:
    """The gradient of the tables: for each table row, the sum of ``grad`` over the batch rows that looked it up.

    That is a sum of rows as well, once the batch rows are sorted by what they looked up. PyTorch's own backward pass
    takes several times as long, and NumPy sorts small numbers several times as fast.
    """
    batch, positions = codes.shape
    small = codes.T.to(torch.int16 if rows < 2**15 else torch.int64)  # (k, B), which rises from position to position
    users = torch.from_numpy(np.argsort(small.numpy(), axis=1, kind="stable")).view(positions * batch)
    uses = torch.bincount(codes.flatten(), minlength=rows)
    return F.embedding_bag(users, grad, uses.cumsum(0) - uses, mode="sum")
