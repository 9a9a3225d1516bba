"""Campaigns whose cases do next to nothing, in a module that a child process loads at once."""

from __future__ import annotations

import os
import signal

from countless_lab.fuzz.campaign import Campaign, Outcome


def crash(seed: int, folder: str) -> Outcome:
    """A case that ends without a result."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def count(seed: int, folder: str) -> Outcome:
    """A case of ten checks, none of which finds anything."""
    return Outcome("odd" if seed % 2 else "even", checks=10)


CRASHING = Campaign("fuzz tables", "table", "fit", crash)
COUNTING = Campaign("fuzz tables", "table", "fit", count)
