"""A masked hidden layer computed in strips: its units are sorted by degree, so half of its weights are zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from countless.spec import ModelSpec

STRIP = 64  # units; narrower ones would save more products, which then take longer each


@dataclass(frozen=True)
class Strip:
    """Neighbouring units: as outputs they see the units before ``seen``, as inputs those from ``seers`` on see them."""

    units: slice
    seen: int
    seers: int


def plan_strips(spec: ModelSpec) -> tuple[Strip, ...]:
    """Cut the hidden units into strips of :data:`STRIP` units."""
    degrees = spec.degrees
    strips = []
    for start in range(0, spec.hidden, STRIP):
        stop = min(start + STRIP, spec.hidden)
        seen = int(np.searchsorted(degrees, degrees[stop - 1], side="right"))
        seers = int(np.searchsorted(degrees, degrees[start], side="left"))
        strips.append(Strip(slice(start, stop), seen, seers))
    return tuple(strips)


class TriangularLinear(torch.autograd.Function):
    """``x @ (weight * mask).T + bias`` without the products that the mask makes zero, but for those on the edge."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, strips: tuple[Strip, ...], weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        masked = weight * mask  # (H, H)
        y = torch.empty_like(x)  # (B, H)
        for strip in strips:
            seen = masked[strip.units, : strip.seen]
            torch.addmm(bias[strip.units], x[:, : strip.seen], seen.T, out=y[:, strip.units])
        ctx.save_for_backward(x, masked, mask)
        ctx.strips = strips
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, masked, mask = ctx.saved_tensors
        grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(masked)
        for strip in ctx.strips:
            torch.mm(grad[:, strip.seers :], masked[strip.seers :, strip.units], out=grad_x[:, strip.units])
            torch.mm(grad[:, strip.units].T, x[:, : strip.seen], out=grad_weight[strip.units, : strip.seen])
        return grad_x, None, grad_weight.mul_(mask), grad.sum(0), None
