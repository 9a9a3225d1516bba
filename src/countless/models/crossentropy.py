"""Logits, cross entropy and gradients fused, so that logits are freed at once.

Both forms take the logits ``x @ weight.T + bias``, return the nats of the targets, each times its count, and add the
gradients to what ``grads`` holds. They differ in which way the logits lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LOGITS = 1 << 20  # most logits that exist at a time: few enough to stay in a processor's cache
SAFE = 1e-30  # a probability above this is far from what a float cannot hold


@dataclass(frozen=True)
class Gradients:
    """Where the gradients of a product's three parts are added up."""

    x: Tensor
    weight: Tensor
    bias: Tensor


def narrow_cross_entropy(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    parts: list[slice],
    targets: Tensor,
    counts: Tensor,
    grads: Gradients | None,
) -> Tensor:
    """Nats of several positions, each with its part of the rows of ``weight``; ``targets`` and ``counts`` are (k, B).

    A symbol's logits lie side by side for the whole batch: to add up the symbols of a position, however few they are,
    is then to add up long rows.
    """
    nats = x.new_zeros(())
    step = max(1, LOGITS // len(weight))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        target, count = targets[:, rows], counts[:, rows]
        logits = torch.addmm(bias[:, None], weight, x[rows].T)  # (symbols, rows)
        views = [logits[part] for part in parts]
        for view in views:
            view.sub_(view.amax(0))
        hit = logits.gather(0, target)  # (k, rows)
        logits.exp_()
        totals = torch.stack([view.sum(0) for view in views])  # (k, rows)
        nats += ((totals.log() - hit) * count).sum()
        if grads is None:
            continue
        for view, scale in zip(views, count / totals, strict=True):
            view.mul_(scale)
        logits.scatter_add_(0, target, -count)  # count * (probability - is it the target)
        grads.x[rows].addmm_(logits.T, weight)
        grads.weight.addmm_(logits, x[rows])
        grads.bias.add_(logits.sum(1))
    return nats


def wide_cross_entropy(
    x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, counts: Tensor, grads: Gradients | None
) -> Tensor:
    """Nats of one position of many symbols; ``targets`` and ``counts`` are (B, 1).

    Counts are multiplied into what is narrow, on either side of the logits, rather than into the logits.
    """
    nats = x.new_zeros(())
    step = max(1, LOGITS // len(weight))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        target, count = targets[rows], counts[rows]
        logits = torch.addmm(bias, x[rows], weight.T)  # (rows, symbols)
        probs = torch.softmax(logits, 1)
        hit = probs.gather(1, target)
        # When a target's probability is too small for a float, its logarithm still is not.
        log_hit = hit.log() if hit.min() > SAFE else torch.log_softmax(logits, 1).gather(1, target)
        nats -= (log_hit * count).sum()
        if grads is None:
            continue
        probs.scatter_(1, target, hit - 1)  # the gradient of the logits, but for the counts
        grads.x[rows].addcmul_(probs @ weight, count)
        grads.weight.addmm_(probs.T, x[rows] * count)
        grads.bias.addmv_(probs.T, count[:, 0])
    return nats
