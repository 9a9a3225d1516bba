"""A masked hidden layer, computed in strips: units are sorted by degree, so half of the weights are zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countless.models.resmade import MaskedLinear
from countless.spec import ModelSpec

STRIP = 64  # units; narrower strips save more multiplications, but each product is slower


@dataclass(frozen=True)
class Strip:
    """Adjacent units. They read the units before ``inputs_end``, and are read by those from ``readers_start`` on.

    All units of the strip read the units before ``edge``; only some read those from ``edge`` on.
    """

    units: slice
    edge: int
    inputs_end: int
    readers_start: int


def plan_strips(spec: ModelSpec) -> tuple[Strip, ...]:
    """Cut the hidden units into strips of :data:`STRIP` units."""
    degrees = spec.degrees
    strips = []
    for start in range(0, spec.hidden, STRIP):
        stop = min(start + STRIP, spec.hidden)
        edge = int(np.searchsorted(degrees, degrees[start], side="right"))
        inputs_end = int(np.searchsorted(degrees, degrees[stop - 1], side="right"))
        readers_start = int(np.searchsorted(degrees, degrees[start], side="left"))
        strips.append(Strip(slice(start, stop), edge, inputs_end, readers_start))
    return tuple(strips)


class Activations:
    """A number for each row and unit, and the views that strips read and write.

    Making a view takes about as long as a small product, so each is made once.
    """

    def __init__(self, rows: int, strips: tuple[Strip, ...], like: Tensor) -> None:
        self.all = like.new_empty(rows, strips[-1].units.stop)
        self.units = [self.all[:, strip.units] for strip in strips]
        self.units_first = [self.all[:, strip.units].T for strip in strips]  # (units, rows)
        self.inputs = [self.all[:, : strip.inputs_end] for strip in strips]
        self.readers = [self.all[:, strip.readers_start :] for strip in strips]


class TriangularLayer:
    """The products of a :class:`MaskedLinear` and their gradients, without most of the masked ones.

    Masked elements of ``layer.weight`` must be zero, and stay zero. Gradients are written to ``weight_grad`` and
    ``bias_grad``.
    """

    def __init__(self, layer: MaskedLinear, strips: tuple[Strip, ...], weight_grad: Tensor, bias_grad: Tensor) -> None:
        weight = layer.weight.detach()
        self.bias, self._bias_grad = layer.bias.detach(), bias_grad
        self._weights = [weight[strip.units, : strip.inputs_end].T for strip in strips]
        self._reader_weights = [weight[strip.readers_start :, strip.units] for strip in strips]
        self._grads = [weight_grad[strip.units, : strip.inputs_end] for strip in strips]
        edges = [
            (strip.units, slice(strip.edge, strip.inputs_end)) for strip in strips if strip.edge < strip.inputs_end
        ]
        self._edge_grads = [(weight_grad[edge], layer.mask[edge].to(weight.dtype)) for edge in edges]

    def add(self, x: Activations, y: Activations) -> None:
        """Add ``x @ weight.T`` to ``y``."""
        for inputs, weight, units in zip(x.inputs, self._weights, y.units, strict=True):
            units.addmm_(inputs, weight)

    def backward(self, x: Activations, grad: Activations, x_grad: Activations) -> None:
        """Write the gradients of weight, bias and ``x``, given the gradient ``grad`` of the layer's output."""
        for readers, weight, units in zip(grad.readers, self._reader_weights, x_grad.units, strict=True):
            torch.mm(readers, weight, out=units)
        for units, inputs, weight_grad in zip(grad.units_first, x.inputs, self._grads, strict=True):
            torch.mm(units, inputs, out=weight_grad)
        for edge_grad, mask in self._edge_grads:
            edge_grad.mul_(mask)
        torch.sum(grad.all, 0, out=self._bias_grad)
