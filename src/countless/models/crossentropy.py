"""Logits, cross entropy and gradients in one function, so that logits are freed at once.

Both functions compute the logits ``x @ weight.T + bias``, return the nats of the targets, each times its count, and add
the gradients to ``grads``. They differ in the layout of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LOGITS = 1 << 20  # most logits that exist at a time: few enough to stay in a processor's cache
SAFE = 1e-30  # a probability above this is far from underflow


@dataclass(frozen=True)
class Gradients:
    """Where the gradients of input, weight and bias are added up."""

    x: Tensor
    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class Segments:
    """The position of each row of a weight, if several positions share the weight."""

    slices: list[slice]
    members: Tensor  # (k, symbols) 1 where a symbol belongs to the position
    members_first: Tensor  # (symbols, k)

    @classmethod
    def of(cls, slices: list[slice], like: Tensor) -> Segments:
        members = like.new_zeros(len(slices), slices[-1].stop)
        for row, symbols in zip(members, slices, strict=True):
            row[symbols] = 1.0
        return cls(slices, members, members.T.contiguous())


def narrow_cross_entropy(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    segments: Segments,
    targets: Tensor,
    counts: Tensor,
    grads: Gradients | None,
) -> Tensor:
    """Nats of several positions, each with its part of the rows of ``weight``; ``targets`` and ``counts`` are (k, B).

    The logits of a symbol are contiguous for the whole batch, and one product adds up the symbols of every position.
    """
    nats = x.new_zeros(())
    step = max(1, LOGITS // len(weight))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        target, count = targets[:, rows], counts[:, rows]
        logits = torch.addmm(bias[:, None], weight, x[rows].T)  # (symbols, rows)
        logits.sub_(logits.amax(0))
        probs = logits.exp()
        totals = segments.members @ probs  # (k, rows)
        if totals.min() < SAFE:  # one position is far below another: subtract each one's own largest logit
            for symbols in segments.slices:
                logits[symbols].sub_(logits[symbols].amax(0))
            torch.exp(logits, out=probs)
            totals = segments.members @ probs
        nats += (totals.log().sub_(logits.gather(0, target)) * count).sum()
        if grads is None:
            continue
        probs.mul_(segments.members_first @ (count / totals))
        probs.scatter_add_(0, target, -count)  # count * (probability - is it the target)
        grads.x[rows].addmm_(probs.T, weight)
        grads.weight.addmm_(probs, x[rows])
        grads.bias.add_(probs.sum(1))
    return nats


def wide_cross_entropy(
    x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, counts: Tensor, grads: Gradients | None
) -> Tensor:
    """Nats of one position of many symbols; ``targets`` and ``counts`` are (B, 1).

    Counts are multiplied into the narrow factors, not into the logits.
    """
    nats = x.new_zeros(())
    step = max(1, LOGITS // len(weight))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        target, count = targets[rows], counts[rows]
        logits = torch.addmm(bias, x[rows], weight.T)  # (rows, symbols)
        probs = torch.softmax(logits, 1)
        hit = probs.gather(1, target)
        # The logarithm of a target's probability is finite even if the probability underflows.
        log_hit = hit.log() if hit.min() > SAFE else torch.log_softmax(logits, 1).gather(1, target)
        nats -= (log_hit * count).sum()
        if grads is None:
            continue
        probs.scatter_(1, target, hit - 1)  # the gradient of the logits, without the counts
        grads.x[rows].addcmul_(probs @ weight, count)
        grads.weight.addmm_(probs.T, x[rows] * count)
        grads.bias.addmv_(probs.T, count[:, 0])
    return nats
