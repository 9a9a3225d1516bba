"""The output layer with tied embeddings and the loss, with hand-written gradients.

Gradients are computed together with the loss, while the logits are in memory. Each position reads exactly the slice of
units that it may depend on, so the output layer's mask is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from countless.models.crossentropy import Gradients, Segments, narrow_cross_entropy, wide_cross_entropy
from countless.models.output_heads import FoldedHead, Heads, OutputSlot

FEW_COUNT = 0.75  # if at most this share of the rows counts, only these rows are computed


@dataclass(frozen=True)
class OutputTensors:
    """The parameters of the output layer, or their gradients."""

    weight: Tensor  # (n*E, H) of the output layer
    out_bias: Tensor  # (n*E,)
    embedding: Tensor
    bias: Tensor  # of the symbols


class TiedOutput:
    """Nats of targets, each times its count, summed over rows and positions.

    Gradients of weight and out_bias are written to ``grads``; those of embedding and bias are added to ``grads``.
    """

    def __init__(self, heads: Heads, parameters: OutputTensors, grads: OutputTensors) -> None:
        self._heads: list[FoldedOutput | WideOutput] = [
            *(FoldedOutput(head, parameters, grads) for head in heads.folded),
            *(WideOutput(slot, parameters, grads) for slot in heads.wide),
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
    """Logits straight from the units, by ``E_p @ Wo_p``. Weights of units that a position may not read are zero."""

    def __init__(self, head: FoldedHead, parameters: OutputTensors, grads: OutputTensors) -> None:
        self._head = head
        self._folded = parameters.weight.new_zeros(head.symbols, head.cut)
        self._bias = parameters.bias.new_zeros(head.symbols)
        self._folded_grad, self._bias_grad = torch.zeros_like(self._folded), torch.zeros_like(self._bias)
        self._segments = Segments.of(head.logit_slices, parameters.weight)
        self._forward, self._backward = [], []
        for slot in head.slots:
            folded_block, weight_block = (slot.logits, slice(None, slot.cut)), (slot.features, slice(None, slot.cut))
            symbols, bias, out_bias = (
                parameters.embedding[slot.symbols],
                parameters.bias[slot.symbols],
                parameters.out_bias[slot.features],
            )
            self._forward.append(
                (
                    symbols,
                    parameters.weight[weight_block],
                    self._folded[folded_block],
                    bias,
                    out_bias,
                    self._bias[slot.logits],
                )
            )
            self._backward.append(
                (
                    self._folded_grad[folded_block],
                    self._bias_grad[slot.logits],
                    parameters.weight[weight_block].T,
                    symbols.T,
                    out_bias,
                    grads.embedding[slot.symbols],
                    grads.bias[slot.symbols],
                    grads.weight[weight_block],
                    grads.out_bias[slot.features],
                )
            )

    def nats(self, h: Tensor, targets: Tensor, counts: Tensor, h_grad: Tensor | None) -> Tensor:
        head = self._head
        for symbols, weight, folded, bias, out_bias, folded_bias in self._forward:
            torch.mm(symbols, weight, out=folded)
            torch.addmv(bias, symbols, out_bias, out=folded_bias)
        head_grads = None
        if h_grad is not None:
            head_grads = Gradients(h_grad[:, : head.cut], self._folded_grad.zero_(), self._bias_grad.zero_())
        head_targets = targets[head.positions] + head.offsets  # (k, B)
        nats = narrow_cross_entropy(
            h[:, : head.cut], self._folded, self._bias, self._segments, head_targets, counts[head.positions], head_grads
        )
        if head_grads is not None:
            self._unfold()
        return nats

    def _unfold(self) -> None:
        """The gradients of the two matrices whose product is the folded one."""
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
    """Logits from the position's features, as in the plain forward pass."""

    def __init__(self, slot: OutputSlot, parameters: OutputTensors, grads: OutputTensors) -> None:
        self._position, self._cut = slot.position, slot.cut
        weight_block = slot.features, slice(None, slot.cut)
        self._weight, self._weight_first = parameters.weight[weight_block], parameters.weight[weight_block].T
        self._out_bias = parameters.out_bias[slot.features]
        self._symbols, self._bias = parameters.embedding[slot.symbols], parameters.bias[slot.symbols]
        self._symbols_grad, self._bias_grad = grads.embedding[slot.symbols], grads.bias[slot.symbols]
        self._weight_grad, self._out_bias_grad = grads.weight[weight_block], grads.out_bias[slot.features]

    def nats(self, h: Tensor, targets: Tensor, counts: Tensor, h_grad: Tensor | None) -> Tensor:
        x, target, count = h[:, : self._cut], targets[self._position], counts[self._position]
        counting_rows = None
        if int(count.count_nonzero()) <= FEW_COUNT * len(count):  # mostly a digit whose leading digit is masked
            counting_rows = count.nonzero()[:, 0]
            x, target, count = (tensor.index_select(0, counting_rows) for tensor in (x, target, count))
        features = torch.addmm(self._out_bias, x, self._weight_first)  # (B, E)
        feature_grads = None
        if h_grad is not None:
            feature_grads = Gradients(torch.zeros_like(features), self._symbols_grad, self._bias_grad)
        nats = wide_cross_entropy(features, self._symbols, self._bias, target[:, None], count[:, None], feature_grads)
        if h_grad is not None and feature_grads is not None:
            units_grad = h_grad[:, : self._cut]
            if counting_rows is None:
                units_grad.addmm_(feature_grads.x, self._weight)
            else:
                units_grad.index_add_(0, counting_rows, feature_grads.x @ self._weight)
            torch.mm(feature_grads.x.T, x, out=self._weight_grad)
            torch.sum(feature_grads.x, 0, out=self._out_bias_grad)
        return nats
