"""Available memory of this machine, and the peak memory use of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

ROOT = Path("/")
UNLIMITED = 1 << 60  # version 1 of cgroups writes a number like this where there is no limit


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes that this process can still take before the system, or the container's limit, stops it.

    It is what Linux calls MemAvailable, or less if a control group (version 1 or 2) leaves less. None where neither can
    be read. ``root`` is where ``/proc`` and ``/sys`` are found.
    """
    found = [_system(root), *_groups(root)]
    known = [size for size in found if size is not None]
    return min(known) if known else None


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


def _system(root: Path) -> int | None:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return None


def _groups(root: Path) -> list[int | None]:
    """What each control group of this process leaves: a group's limit holds for all groups below it, too."""
    found: list[int | None] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        # Inside a container the path may be that of the host: then only the mount itself exists.
        found += [_left(base.joinpath(*parts[:depth]), names) for depth in range(len(parts) + 1)]
    return found


def _left(group: Path, names: tuple[str, str, str]) -> int | None:
    """The limit of a group less what it holds; cached file pages are given back when they are needed."""
    limit, used = (_number(group / name) for name in names[:2])
    if limit is None or used is None or limit >= UNLIMITED:
        return None
    cached = 0
    for line in _text(group / "memory.stat").splitlines():
        name, _, amount = line.partition(" ")
        if name == names[2] and amount.isdecimal():
            cached = int(amount)
    return max(0, limit - max(0, used - cached))


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
