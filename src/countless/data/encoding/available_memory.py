"""Available memory of this machine, and the peak memory use of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

ROOT = Path("/")
UNLIMITED = 1 << 60  # version 1 of cgroups writes a greater number if there is no limit


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes that this process can still take before the system, or the container's limit, stops it.

    That is Linux's MemAvailable, or less if a control group (version 1 or 2) allows less. None if neither can be read.
    ``root`` is the folder that has ``/proc`` and ``/sys``.
    """
    sizes = [size for size in (_system(root), *_groups(root)) if size is not None]
    return min(sizes) if sizes else None


def peak_memory() -> int:
    """The peak memory of this process in bytes.

    On Linux ``ru_maxrss`` of a child includes the memory of its parent at the start; ``VmHWM`` does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _system(root: Path) -> int | None:
    """MemAvailable of the machine."""
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return None


def _groups(root: Path) -> list[int | None]:
    """The available memory of each control group of this process, and of the groups above it."""
    sizes: list[int | None] = []
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
        # Inside a container the path may be that of the host: then only the mount point itself exists.
        sizes += [_available(base.joinpath(*parts[:depth]), names) for depth in range(len(parts) + 1)]
    return sizes


def _available(group: Path, names: tuple[str, str, str]) -> int | None:
    """The limit of a group minus the memory it uses; cached file pages do not count, because they can be dropped."""
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
    """The number in a file."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    """The text of a file, empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
