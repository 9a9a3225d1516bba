"""How much memory a process has taken."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """The most bytes that this process has held.

    On Linux ``ru_maxrss`` of a child also counts what its parent held when it was started; ``VmHWM`` does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def held_memory(process: int) -> int:
    """The bytes that a process of this machine holds now; 0 where that cannot be told."""
    status = Path(f"/proc/{process}/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0
