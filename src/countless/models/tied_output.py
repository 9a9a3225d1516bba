"""The output layer with tied embeddings and the loss, with hand-written gradients.

Gradients are computed along with the loss, while the logits are at hand. Of the units, a position reads exactly the
slice that it may see, so the output layer's mask is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from countless.models.crossentropy import Gradients, Segments, narrow_cross_entropy, wide_cross_entropy
from countless.models.output_heads import FoldedHead, Heads, OutputSlot

FEW_COUNT = 0.75  # of the rows; if no more of them count, only these are computed


@dataclass(frozen=True)
class OutputTensors:
    """What the output layer is made of; or, of the same shapes, its gradients."""

    weight: Tensor  # (n*E, H) of the output layer
    out_bias: Tensor  # (n*E,)
    embedding: Tensor
    bias: Tensor  # of the symbols


class TiedOutput:
    """Nats of targets, each times its count, summed over rows and positions.

    Gradients of weight and out_bias are written to ``grads``; those of embedding and bias are added to what is there.
    """

    def __init__(self, heads: Heads, given: OutputTensors, grads: OutputTensors) -> None:
        self._heads: list[FoldedOutput | WideOutput] = [
            *(FoldedOutput(head, given, grads) for head in heads.folded),
            *(WideOutput(slot, given, grads) for slot in heads.wide),
        ]

    def nats(self, h: Tensor, targets: Tensor, counts: Tensor, h_grad: Tensor | None) -> Tensor:
        """Nats given the units ``h`` (B, H); ``targets`` and ``counts`` are (n, B).

        With ``h_grad``, the gradient of ``h`` is added to it, and the others are computed too.
        """
        nats = h.new_zeros(())
        for head in self._heads:
            nats += head.nats(h, targets, counts, h_grad)
        return nats


class FoldedOutput:
    """Logits straight from the units, by ``E_p @ Wo_p``; what a position may not see is zero there."""

    def __init__(self, head: FoldedHead, given: OutputTensors, grads: OutputTensors) -> None:
        self._head = head
        self._folded = given.weight.new_zeros(head.symbols, head.cut)
        self._bias = given.bias.new_zeros(head.symbols)
        self._folded_grad, self._bias_grad = torch.zeros_like(self._folded), torch.zeros_like(self._bias)
        self._segments = Segments.of(head.parts, given.weight)
        self._forward, self._backward = [], []
        for slot in head.slots:
            part, seen = (slot.logits, slice(None, slot.cut)), (slot.features, slice(None, slot.cut))
            symbols, bias, out_bias = (
                given.embedding[slot.symbols],
                given.bias[slot.symbols],
                given.out_bias[slot.features],
            )
            self._forward.append(
                (symbols, given.weight[seen], self._folded[part], bias, out_bias, self._bias[slot.logits])
            )
            self._backward.append(
                (
                    self._folded_grad[part],
                    self._bias_grad[slot.logits],
                    given.weight[seen].T,
                    symbols.T,
                    out_bias,
                    grads.embedding[slot.symbols],
                    grads.bias[slot.symbols],
                    grads.weight[seen],
                    grads.out_bias[slot.features],
                )
            )

    def nats(self, h: Tensor, targets: Tensor, counts: Tensor, h_grad: Tensor | None) -> Tensor:
        head = self._head
        for symbols, weight, folded, bias, out_bias, folded_bias in self._forward:
            torch.mm(symbols, weight, out=folded)
            torch.addmv(bias, symbols, out_bias, out=folded_bias)
        sums = None
        if h_grad is not None:
            sums = Gradients(h_grad[:, : head.cut], self._folded_grad.zero_(), self._bias_grad.zero_())
        wanted = targets[head.positions] + head.offsets  # (k, B)
        nats = narrow_cross_entropy(
            h[:, : head.cut], self._folded, self._bias, self._segments, wanted, counts[head.positions], sums
        )
        if sums is not None:
            self._unfold()
        return nats

    def _unfold(self) -> None:
        """The gradients of what was multiplied out."""
        for (
            back,
            back_bias,
            weight_first,
            symbols_first,
            out_bias,
            symbols_grad,
            bias_grad,
            weight_grad,
            out_bias_grad,
        ) in self._backward:
            symbols_grad.addmm_(back, weight_first).addr_(back_bias, out_bias)
            bias_grad.add_(back_bias)
            torch.mm(symbols_first, back, out=weight_grad)
            torch.mv(symbols_first, back_bias, out=out_bias_grad)


class WideOutput:
    """Logits from the position's features, as the plain form has them."""

    def __init__(self, slot: OutputSlot, given: OutputTensors, grads: OutputTensors) -> None:
        self._position, self._cut = slot.position, slot.cut
        seen = slot.features, slice(None, slot.cut)
        self._weight, self._weight_first = given.weight[seen], given.weight[seen].T
        self._out_bias = given.out_bias[slot.features]
        self._symbols, self._bias = given.embedding[slot.symbols], given.bias[slot.symbols]
        self._symbols_grad, self._bias_grad = grads.embedding[slot.symbols], grads.bias[slot.symbols]
        self._weight_grad, self._out_bias_grad = grads.weight[seen], grads.out_bias[slot.features]

    def nats(self, h: Tensor, targets: Tensor, counts: Tensor, h_grad: Tensor | None) -> Tensor:
        x, target, count = h[:, : self._cut], targets[self._position], counts[self._position]
        counted = None
        if int(count.count_nonzero()) <= FEW_COUNT * len(count):  # a digit, mostly, whose leading one is masked
            counted = count.nonzero()[:, 0]
            x, target, count = (each.index_select(0, counted) for each in (x, target, count))
        features = torch.addmm(self._out_bias, x, self._weight_first)  # (B, E)
        sums = None
        if h_grad is not None:
            sums = Gradients(torch.zeros_like(features), self._symbols_grad, self._bias_grad)
        nats = wide_cross_entropy(features, self._symbols, self._bias, target[:, None], count[:, None], sums)
        if h_grad is not None and sums is not None:
            seen = h_grad[:, : self._cut]
            if counted is None:
                seen.addmm_(sums.x, self._weight)
            else:
                seen.index_add_(0, counted, sums.x @ self._weight)
            torch.mm(sums.x.T, x, out=self._weight_grad)
            torch.sum(sums.x, 0, out=self._out_bias_grad)
        return nats
