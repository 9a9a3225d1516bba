"""The loss of a ResMADE with hand-written gradients, in far fewer operations than autograd."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor, nn

from countless.models.first_layer import FirstLayer, FirstTensors, plan_inputs
from countless.models.output_heads import plan_heads
from countless.models.resmade import MaskedLinear, OrderedLinear, ResidualBlock, ResMADE
from countless.models.tied_output import OutputTensors, TiedOutput
from countless.models.triangular import Activations, TriangularLayer, plan_strips

MEASURED_ROWS = 512  # rows that are measured at a time, so that measuring takes no more memory than training
CACHED_SIZES = 3  # batch sizes with cached activations: a batch, the last one of an epoch, and measured rows


@dataclass(frozen=True)
class OrderLayers:
    """The two layers that depend on the order, and their biases."""

    first: FirstLayer
    first_bias: Tensor
    out: TiedOutput
    out_bias: Tensor


@dataclass(frozen=True)
class RowActivations:
    """Buffers for the activations of a batch and for their gradients."""

    h: Activations
    inner: tuple[Activations, ...]  # inputs of the inner layer of each block
    outer: tuple[Activations, ...]  # inputs of the outer layer of each block
    last: Activations
    grad: Activations
    inner_grad: Activations
    outer_grad: Activations


class TrainingStep:
    """``-(model.log_prob(inputs, targets, order) * counts).sum()``, and its gradients up to rounding.

    It computes with views of the model's parameters, which are made once, so it reads all later changes. Masked weights
    are set to zero and stay zero, because their gradient is zero: no mask is multiplied in a step.

    >>> from countless.spec import ModelSpec
    >>> model = ResMADE(ModelSpec(sizes=(3, 2), hidden=8, blocks=1, embedding=4))
    >>> codes = torch.tensor([[2, 0], [1, 1]])
    >>> nats = TrainingStep(model).nats(codes, codes, torch.ones(2, 2))
    >>> torch.allclose(nats, -model.log_prob(codes, codes).sum())
    True
    """

    def __init__(self, model: ResMADE) -> None:
        _zero_masked_weights(model)
        self.model = model
        self._grads = {name: torch.zeros_like(parameter.detach()) for name, parameter in model.named_parameters()}
        self._parameters = [(parameter, self._grads[name]) for name, parameter in model.named_parameters()]
        self._strips = plan_strips(model.spec)
        self._blocks = [
            (
                self._triangular(f"blocks.{index}.inner", cast(ResidualBlock, block).inner),
                self._triangular(f"blocks.{index}.outer", cast(ResidualBlock, block).outer),
            )
            for index, block in enumerate(model.blocks)
        ]
        self._orders = [self._layers_of(order) for order in range(len(model.spec.orders))]
        # Gradients that are added to. With several orders, weights that one order masks would keep another's gradient.
        added_names = {"embedding", "bias", *(("first.weight", "out.weight") if len(self._orders) > 1 else ())}
        self._added = [self._grads[name] for name in added_names]
        self._activations = lru_cache(CACHED_SIZES)(self._new_activations)

    def nats(self, inputs: Tensor, targets: Tensor, counts: Tensor, order: int = 0) -> Tensor:
        """Nats of ``targets`` (B, n), each times its count (B, n), given ``inputs`` (B, n) that may contain MASK."""
        nats = self._grads["bias"].new_zeros(())
        with torch.no_grad():
            for start in range(0, len(inputs), MEASURED_ROWS):
                rows = slice(start, start + MEASURED_ROWS)
                buffers = self._activations(len(inputs[rows]))
                nats += self._forward(buffers, inputs[rows], targets[rows], counts[rows], order, gradients=False)
        return nats

    def gradients(self, inputs: Tensor, targets: Tensor, counts: Tensor, order: int = 0) -> Tensor:
        """The same, and sets the gradients of the model's parameters to those of these nats."""
        with torch.no_grad():
            for grad in self._added:
                grad.zero_()
            buffers = self._activations(len(inputs))
            nats = self._forward(buffers, inputs, targets, counts, order, gradients=True)
            self._backward(buffers, order)
            for parameter, grad in self._parameters:
                parameter.grad = grad
            return nats

    def _forward(
        self, buffers: RowActivations, inputs: Tensor, targets: Tensor, counts: Tensor, order: int, gradients: bool
    ) -> Tensor:
        layers, h, last = self._orders[order], buffers.h, buffers.last
        if len(self._orders) > 1:
            layers.first_bias.copy_(self.model.first.bias_under(order))
            layers.out_bias.copy_(self.model.out.bias_under(order))
        h.all.copy_(layers.first_bias)
        layers.first.add(inputs, h.all)
        for (inner, outer), x, y in zip(self._blocks, buffers.inner, buffers.outer, strict=True):
            torch.clamp_min(h.all, 0, out=x.all)
            y.all.copy_(inner.bias)
            inner.add(x, y)
            y.all.clamp_min_(0)
            h.all.add_(outer.bias)
            outer.add(y, h)
        torch.clamp_min(h.all, 0, out=last.all)
        targets_first, weights = targets.T.contiguous(), counts.T.to(h.all.dtype).contiguous()  # (n, B)
        return layers.out.nats(last.all, targets_first, weights, buffers.grad.all.zero_() if gradients else None)

    def _backward(self, buffers: RowActivations, order: int) -> None:
        grad, layers = buffers.grad, self._orders[order]
        _rectified_backward(grad.all, buffers.last.all)
        for (inner, outer), x, y in zip(
            reversed(self._blocks), reversed(buffers.inner), reversed(buffers.outer), strict=True
        ):
            outer.backward(y, grad, buffers.outer_grad)
            _rectified_backward(buffers.outer_grad.all, y.all)
            inner.backward(x, buffers.outer_grad, buffers.inner_grad)
            _rectified_backward(buffers.inner_grad.all, x.all)
            grad.all.add_(buffers.inner_grad.all)
        layers.first.backward(grad.all)
        torch.sum(grad.all, 0, out=self._grads["first.bias"])
        for name in ("first", "out"):
            layer = cast(OrderedLinear, self.model.get_submodule(name))
            if layer.signal is not None:
                torch.mul(
                    self._grads[f"{name}.bias"][:, None], layer.unmasked[order], out=self._grads[f"{name}.signal"]
                )

    def _triangular(self, name: str, layer: MaskedLinear) -> TriangularLayer:
        return TriangularLayer(layer, self._strips, self._grads[f"{name}.weight"], self._grads[f"{name}.bias"])

    def _layers_of(self, order: int) -> OrderLayers:
        model, spec, grads = self.model, self.model.spec, self._grads
        embedding, has_several_orders = model.embedding.detach(), len(spec.orders) > 1
        first_bias, out_bias = (
            layer.bias.detach().clone() if has_several_orders else layer.bias.detach()
            for layer in (model.first, model.out)
        )
        first = FirstLayer(
            plan_inputs(spec, order),
            FirstTensors(embedding, model.first.weight.detach()),
            FirstTensors(grads["embedding"], grads["first.weight"]),
        )
        out = TiedOutput(
            plan_heads(spec, order),
            OutputTensors(model.out.weight.detach(), out_bias, embedding, model.bias.detach()),
            OutputTensors(grads["out.weight"], grads["out.bias"], grads["embedding"], grads["bias"]),
        )
        return OrderLayers(first, first_bias, out, out_bias)

    def _new_activations(self, rows: int) -> RowActivations:
        def new() -> Activations:
            return Activations(rows, self._strips, self.model.embedding.detach())

        blocks = range(len(self._blocks))
        return RowActivations(
            new(), tuple(new() for _ in blocks), tuple(new() for _ in blocks), new(), new(), new(), new()
        )


def _rectified_backward(grad: Tensor, rectified: Tensor) -> None:
    """Set the gradient to zero where the rectified number is zero."""
    torch.ops.aten.threshold_backward.grad_input(grad, rectified, 0, grad_input=grad)


def _zero_masked_weights(model: nn.Module) -> None:
    """Set the weights that are masked under every order to zero."""
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, MaskedLinear):
                layer.weight.mul_(layer.mask)
            elif isinstance(layer, OrderedLinear):
                layer.weight.mul_(layer.masks.any(0))
