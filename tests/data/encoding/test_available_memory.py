"""How much memory is left: the system's, or what control groups of either version leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from countless.data.encoding.available_memory import available_memory

GB = 10**9


def machine(root: Path, **files: str) -> Path:
    """A root with such files; in their names ``__`` stands for a slash."""
    meminfo = "MemTotal: 32000000 kB\nMemAvailable: 16000000 kB\n"
    for name, text in {"proc__meminfo": meminfo, **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def group(root: Path, path: str, **files: str) -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_a_limit_it_is_what_the_system_has(tmp_path: Path) -> None:
    assert available_memory(machine(tmp_path)) == 16_000_000 * 1024
    group(tmp_path, "sys/fs/cgroup", memory__max="max\n", memory__current="5\n")
    machine(tmp_path, proc__self__cgroup="0::/\n")
    assert available_memory(tmp_path) == 16_000_000 * 1024


@pytest.mark.parametrize("path", ["/", "/job/step"])
def test_version_2(tmp_path: Path, path: str) -> None:
    machine(tmp_path, proc__self__cgroup=f"0::{path}\n")
    stat = f"anon 3\nactive_file 9\ninactive_file {GB}\n"
    used = f"{3 * GB}\n"
    group(tmp_path, "sys/fs/cgroup/job", memory__max=f"{8 * GB}\n", memory__current=used, memory__stat=stat)
    expected = 8 * GB - 2 * GB if path != "/" else 16_000_000 * 1024
    assert available_memory(tmp_path) == expected


def test_version_1(tmp_path: Path) -> None:
    machine(tmp_path, proc__self__cgroup="9:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n")
    used = f"{GB}\n"
    # Inside a container the group is mounted where the host has the root.
    group(tmp_path, "sys/fs/cgroup/memory", memory__limit_in_bytes=f"{4 * GB}\n", memory__usage_in_bytes=used)
    assert available_memory(tmp_path) == 3 * GB
    group(tmp_path, "sys/fs/cgroup/memory", memory__limit_in_bytes="9223372036854771712\n")
    assert available_memory(tmp_path) == 16_000_000 * 1024


def test_more_used_than_allowed_leaves_nothing(tmp_path: Path) -> None:
    machine(tmp_path, proc__self__cgroup="0::/\n")
    group(tmp_path, "sys/fs/cgroup", memory__max="100\n", memory__current="200\n")
    assert available_memory(tmp_path) == 0


def test_where_nothing_can_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None
