"""The output layer with tied embeddings and the loss, as one function with hand-written gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from countless.models.crossentropy import Gradients, narrow_cross_entropy, wide_cross_entropy
from countless.models.output_heads import FoldedHead, Heads, OutputSlot


@dataclass(frozen=True)
class Tensors:
    """What the loss depends on; or, of the same shapes, its gradients."""

    h: Tensor  # (B, H) activations of the last layer
    weight: Tensor  # (n*E, H) of the output layer
    out_bias: Tensor  # (n*E,)
    embedding: Tensor
    bias: Tensor  # of the symbols

    def all(self) -> tuple[Tensor, ...]:
        return self.h, self.weight, self.out_bias, self.embedding, self.bias

    def zeros(self) -> Tensors:
        return Tensors(*(torch.zeros_like(tensor) for tensor in self.all()))


class TiedLoss(torch.autograd.Function):
    """Nats of the targets, each times its count, summed over rows and positions.

    The gradients are computed along with the loss, while the logits are at hand; the backward pass only scales them.
    Of the units, a position reads exactly the slice that it may see, so the output layer's mask is not needed.
    """

    @staticmethod
    def forward(ctx: Any, targets: Tensor, counts: Tensor, heads: Heads, gradients: bool, *tensors: Tensor) -> Tensor:
        given = Tensors(*tensors)
        grads = given.zeros() if gradients else None
        nats = given.h.new_zeros(())
        for head in heads.folded:
            nats += _folded(head, given, targets, counts, grads)
        for slot in heads.wide:
            nats += _wide(slot, given, targets, counts, grads)
        ctx.grads = grads
        return nats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, None, *(gradient * grad for gradient in ctx.grads.all())


def _folded(head: FoldedHead, given: Tensors, targets: Tensor, counts: Tensor, grads: Tensors | None) -> Tensor:
    """Logits straight from the units, by ``E_p @ Wo_p``; what a position may not see is zero there."""
    x = given.h[:, : head.cut]
    folded, bias = x.new_zeros(head.symbols, head.cut), x.new_empty(head.symbols)
    for slot in head.slots:
        symbols = given.embedding[slot.symbols]
        torch.mm(symbols, given.weight[slot.features, : slot.cut], out=folded[slot.logits, : slot.cut])
        torch.addmv(given.bias[slot.symbols], symbols, given.out_bias[slot.features], out=bias[slot.logits])
    sums = (
        None if grads is None else Gradients(grads.h[:, : head.cut], torch.zeros_like(folded), torch.zeros_like(bias))
    )
    wanted = targets[head.positions] + head.offsets  # (k, B)
    nats = narrow_cross_entropy(x, folded, bias, head.parts, wanted, counts[head.positions], sums)
    if grads is None or sums is None:
        return nats
    for slot in head.slots:
        symbols, weight = given.embedding[slot.symbols], given.weight[slot.features, : slot.cut]
        back, back_bias = sums.weight[slot.logits, : slot.cut], sums.bias[slot.logits]
        torch.mm(back, weight.T, out=grads.embedding[slot.symbols]).addr_(back_bias, given.out_bias[slot.features])
        torch.mm(symbols.T, back, out=grads.weight[slot.features, : slot.cut])
        torch.mv(symbols.T, back_bias, out=grads.out_bias[slot.features])
        grads.bias[slot.symbols] = back_bias
    return nats


def _wide(slot: OutputSlot, given: Tensors, targets: Tensor, counts: Tensor, grads: Tensors | None) -> Tensor:
    """Logits from the position's features, as the plain form has them."""
    x, weight = given.h[:, : slot.cut], given.weight[slot.features, : slot.cut]
    symbols, bias = given.embedding[slot.symbols], given.bias[slot.symbols]
    features = torch.addmm(given.out_bias[slot.features], x, weight.T)  # (B, E)
    sums = None
    if grads is not None:
        sums = Gradients(torch.zeros_like(features), grads.embedding[slot.symbols], grads.bias[slot.symbols])
    target, count = targets[slot.position, :, None], counts[slot.position, :, None]  # (B, 1)
    nats = wide_cross_entropy(features, symbols, bias, target, count, sums)
    if grads is not None and sums is not None:
        grads.h[:, : slot.cut].addmm_(sums.x, weight)
        torch.mm(sums.x.T, x, out=grads.weight[slot.features, : slot.cut])
        torch.sum(sums.x, 0, out=grads.out_bias[slot.features])
    return nats
