"""A test whether half-precision matrix products are faster on this machine."""

from __future__ import annotations

import time
from functools import lru_cache

import torch

REPEATS = 8
WORTH = 1.3  # least speed-up


@lru_cache(maxsize=1)
def half_precision_pays() -> bool:
    """Whether bfloat16 is clearly faster than float32 here: only some processors have instructions for it."""
    return WORTH * _seconds(torch.bfloat16) < _seconds(torch.float32)


def _seconds(dtype: torch.dtype) -> float:
    inputs, weight = torch.ones(4096, 64, dtype=dtype), torch.ones(256, 64, dtype=dtype)
    best = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        torch.nn.functional.linear(inputs, weight)
        best = min(best, time.perf_counter() - started)
    return best
