"""The first layer as a sum of table rows. A position's table is the product of its embedding and the linear layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from countless.spec import ModelSpec

TABLE_SYMBOLS = 128  # most symbols of a position with a table, which takes a product for each symbol in every step
TABLE_ROWS = 8_192  # most rows of a stack


@dataclass(frozen=True)
class InputSlot:
    """The slices of one position, and the first unit that may read it."""

    position: int
    symbols: slice  # rows of the embedding, MASK included
    inputs: slice  # columns of the first layer's weight
    start: int


@dataclass(frozen=True)
class InputPlan:
    """Positions with a table, in stacks of adjacent ranks, and wide positions, whose embeddings are multiplied."""

    stacks: tuple[tuple[InputSlot, ...], ...]
    wide: tuple[InputSlot, ...]


def plan_inputs(spec: ModelSpec, order: int = 0) -> InputPlan:
    """Plan the positions in the order of their ranks under one of the spec's orders."""
    first_rows = np.cumsum([0, *(size + 1 for size in spec.sizes)]).tolist()
    stacks: list[list[InputSlot]] = []
    wide: list[InputSlot] = []
    for rank, position in enumerate(spec.orders[order]):
        symbols = slice(first_rows[position], first_rows[position + 1])
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
    rows = sum(_size(stacked) for stacked in stack)
    return rows + _size(slot) <= TABLE_ROWS


def _size(slot: InputSlot) -> int:
    return int(slot.symbols.stop - slot.symbols.start)


@dataclass(frozen=True)
class FirstTensors:
    """The parameters of the first layer, or their gradients."""

    embedding: Tensor
    weight: Tensor


class FirstLayer:
    """``concat(E_p[x_p]) @ W.T`` as ``sum of T_p[x_p]``, where ``T_p = E_p @ W_p.T``, and its gradients.

    A table takes a product for each symbol of its position, the plain layer one for each row of the batch, so positions
    with many symbols use the plain layer. Units that may not read a position are left out of its product.
    """

    def __init__(self, plan: InputPlan, parameters: FirstTensors, grads: FirstTensors) -> None:
        self._sublayers: list[TableStack | WideInputs] = [TableStack(slots, parameters, grads) for slots in plan.stacks]
        if plan.wide:
            self._sublayers.append(WideInputs(plan.wide, parameters, grads))

    def add(self, inputs: Tensor, h: Tensor) -> None:
        """Add the layer's output for ``inputs`` (B, n) to ``h`` (B, H)."""
        for sublayer in self._sublayers:
            sublayer.add(inputs, h)

    def backward(self, grad: Tensor) -> None:
        """Add the gradients for the inputs of the last :meth:`add`. ``grad`` (B, H) is that of its output."""
        for sublayer in self._sublayers:
            sublayer.backward(grad)


class TableStack:
    """The stacked tables of positions of adjacent ranks. Units before ``start`` read none of them."""

    def __init__(self, slots: tuple[InputSlot, ...], parameters: FirstTensors, grads: FirstTensors) -> None:
        self._start = slots[0].start  # slots are in the order of their ranks
        ends = np.cumsum([_size(slot) for slot in slots]).tolist()
        self._rows = ends[-1]
        self._positions = torch.tensor([slot.position for slot in slots])
        self._offsets = torch.tensor([0, *ends[:-1]])
        shape = self._rows, len(parameters.weight) - self._start
        self._tables, self._grads = parameters.weight.new_zeros(shape), parameters.weight.new_zeros(shape)
        self._forward, self._backward = [], []
        for slot, end in zip(slots, ends, strict=True):
            table_block = slice(end - _size(slot), end), slice(slot.start - self._start, None)
            weight_block = slice(slot.start, None), slot.inputs
            symbols, products = parameters.embedding[slot.symbols], parameters.weight[weight_block]
            self._forward.append((symbols, products.T, self._tables[table_block]))
            table_grad = self._grads[table_block]
            self._backward.append(
                (table_grad, table_grad.T, products, symbols, grads.embedding[slot.symbols], grads.weight[weight_block])
            )

    def add(self, inputs: Tensor, h: Tensor) -> None:
        for symbols, products, table in self._forward:
            torch.mm(symbols, products, out=table)
        self._codes = inputs.index_select(1, self._positions) + self._offsets  # (B, k)
        h[:, self._start :] += F.embedding_bag(self._codes, self._tables, mode="sum")

    def backward(self, grad: Tensor) -> None:
        self._grads.copy_(_sum_by_row(self._codes, self._rows, grad[:, self._start :].contiguous()))
        for table_grad, table_grad_first, products, symbols, symbols_grad, weight_grad in self._backward:
            symbols_grad.addmm_(table_grad, products)
            torch.mm(table_grad_first, symbols, out=weight_grad)


class WideInputs:
    """Positions of many symbols: only the batch's symbols are looked up and multiplied."""

    def __init__(self, slots: tuple[InputSlot, ...], parameters: FirstTensors, grads: FirstTensors) -> None:
        self._embedding, self._embedding_grad = parameters.embedding, grads.embedding
        self._positions = torch.tensor([slot.position for slot in slots])
        self._firsts = torch.tensor([slot.symbols.start for slot in slots])
        self._starts = [slot.start for slot in slots]
        weights = [(slice(slot.start, None), slot.inputs) for slot in slots]
        self._products = [parameters.weight[weight] for weight in weights]
        self._products_first = [products.T for products in self._products]
        self._grads = [grads.weight[weight] for weight in weights]

    def add(self, inputs: Tensor, h: Tensor) -> None:
        self._rows = inputs.index_select(1, self._positions) + self._firsts  # (B, k)
        self._embedded = F.embedding(self._rows.T, self._embedding)  # (k, B, E)
        for start, symbols, products in zip(self._starts, self._embedded, self._products_first, strict=True):
            h[:, start:].addmm_(symbols, products)

    def backward(self, grad: Tensor) -> None:
        embedded_grad = torch.empty_like(self._embedded)
        for start, symbols, symbols_grad, products, weight_grad in zip(
            self._starts, self._embedded, embedded_grad, self._products, self._grads, strict=True
        ):
            readers_grad = grad[:, start:]
            torch.mm(readers_grad, products, out=symbols_grad)
            torch.mm(readers_grad.T, symbols, out=weight_grad)
        self._embedding_grad.index_add_(0, self._rows.T.flatten(), embedded_grad.flatten(0, 1))


def _sum_by_row(codes: Tensor, rows: int, grad: Tensor) -> Tensor:
    """The gradient of the tables: for each table row, the sum of ``grad`` over the batch rows that looked it up.

    This is a sum of adjacent rows once the batch rows are sorted by the row that they looked up. PyTorch's own backward
    pass is several times slower, and NumPy sorts small numbers several times faster.
    """
    batch, positions = codes.shape
    small = codes.T.to(torch.int16 if rows < 2**15 else torch.int64)  # (k, B), larger for later positions
    users = torch.from_numpy(np.argsort(small.numpy(), axis=1, kind="stable")).view(positions * batch)
    uses = torch.bincount(codes.flatten(), minlength=rows)
    return F.embedding_bag(users, grad, uses.cumsum(0) - uses, mode="sum")
