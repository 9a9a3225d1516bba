"""Settings of the C memory allocator: a training step reuses the memory that the step before has freed."""

from __future__ import annotations

import torch

FREED_BYTES = 31 * 2**20  # just below glibc's limit for a dynamic threshold


def keep_freed_memory() -> None:
    """Let a step reuse the memory of the step before.

    By default glibc returns large blocks to the system as soon as they are freed, so that every step gets new pages,
    which takes a tenth of its time. After a block of this size was freed, glibc keeps up to twice as much for reuse. On
    other C libraries this has no effect.
    """
    torch.empty(FREED_BYTES, dtype=torch.uint8)
