"""Settings of the C memory allocator: a training step reuses the memory that the step before has freed."""

from __future__ import annotations

import torch

FREED_BYTES = 31 * 2**20  # just below glibc's own limit for what may raise its thresholds


def keep_freed_memory() -> None:
    """Let a step reuse the memory of the step before.

    By default glibc gives large blocks back to the system as soon as they are freed, and every step pays for fresh
    pages again: a tenth of its time. Once a block of this size has been freed, glibc keeps up to twice as much for
    reuse. Other C libraries take no notice.
    """
    torch.empty(FREED_BYTES, dtype=torch.uint8)
