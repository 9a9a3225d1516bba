"""How PyTorch's threads wait for each other."""

from __future__ import annotations

import os


def wait_passively() -> None:
    """Let waiting threads sleep. To be called before PyTorch is loaded; a setting of the user's own stands.

    By default they spin, which is a little faster while they have all cores to themselves, and ten times slower as
    soon as anything else runs on the machine: a spinning thread keeps the one it waits for from running.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
