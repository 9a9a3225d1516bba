"""A masked hidden layer computed in strips: its units are sorted by degree, so half of its weights are zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countless.models.resmade import MaskedLinear
from countless.spec import ModelSpec

STRIP = 64  # units; narrower ones would save more products, which then take longer each


@dataclass(frozen=True)
class Strip:
    """Neighbouring units: as outputs they see the units before ``seen``, as inputs those from ``seers`` on see them.

    All of them see the units before ``edge``, and only some those from there on.
    """

    units: slice
    edge: int
    seen: int
    seers: int


def plan_strips(spec: ModelSpec) -> tuple[Strip, ...]:
    """Cut the hidden units into strips of :data:`STRIP` units."""
    degrees = spec.degrees
    strips = []
    for start in range(0, spec.hidden, STRIP):
        stop = min(start + STRIP, spec.hidden)
        edge = int(np.searchsorted(degrees, degrees[start], side="right"))
        seen = int(np.searchsorted(degrees, degrees[stop - 1], side="right"))
        seers = int(np.searchsorted(degrees, degrees[start], side="left"))
        strips.append(Strip(slice(start, stop), edge, seen, seers))
    return tuple(strips)


class Activations:
    """A number for each row and unit, and the views of them that the strips read and write.

    A view takes about as long to make as a small product, so each is made once.
    """

    def __init__(self, rows: int, strips: tuple[Strip, ...], like: Tensor) -> None:
        self.all = like.new_empty(rows, strips[-1].units.stop)
        self.units = [self.all[:, strip.units] for strip in strips]
        self.units_first = [self.all[:, strip.units].T for strip in strips]  # (units, rows)
        self.seen = [self.all[:, : strip.seen] for strip in strips]
        self.seers = [self.all[:, strip.seers :] for strip in strips]


class TriangularLayer:
    """The products of a :class:`MaskedLinear` and their gradients, but for most of those that the mask makes zero.

    What the mask hides of ``layer.weight`` must be zero, and stays so. Gradients are written to ``weight_grad`` and
    ``bias_grad``.
    """

    def __init__(self, layer: MaskedLinear, strips: tuple[Strip, ...], weight_grad: Tensor, bias_grad: Tensor) -> None:
        weight = layer.weight.detach()
        self.bias, self._bias_grad = layer.bias.detach(), bias_grad
        self._seen = [weight[strip.units, : strip.seen].T for strip in strips]
        self._seers = [weight[strip.seers :, strip.units] for strip in strips]
        self._grads = [weight_grad[strip.units, : strip.seen] for strip in strips]
        edges = [(strip.units, slice(strip.edge, strip.seen)) for strip in strips if strip.edge < strip.seen]
        self._edges = [(weight_grad[edge], layer.mask[edge].to(weight.dtype)) for edge in edges]

    def add(self, x: Activations, y: Activations) -> None:
        """Add ``x @ weight.T`` to ``y``."""
        for seen, weight, units in zip(x.seen, self._seen, y.units, strict=True):
            units.addmm_(seen, weight)

    def backward(self, x: Activations, grad: Activations, x_grad: Activations) -> None:
        """Write the gradients of weight, bias and ``x``, where that of the layer's output is ``grad``."""
        for seers, weight, units in zip(grad.seers, self._seers, x_grad.units, strict=True):
            torch.mm(seers, weight, out=units)
        for units, seen, weight_grad in zip(grad.units_first, x.seen, self._grads, strict=True):
            torch.mm(units, seen, out=weight_grad)
        for hidden, mask in self._edges:
            hidden.mul_(mask)
        torch.sum(grad.all, 0, out=self._bias_grad)
