"""Files that are written whole, and what is left of those that were not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from countless.data.atomic_files import remove_strays, write_whole

WRITE = """
import sys, time
from countless.data.atomic_files import write_whole

def write(partial):
    print("writing", flush=True)
    time.sleep(600)

write_whole(sys.argv[1], write)
"""


def test_strays_of_a_killed_process_are_removed_and_not_before(tmp_path: Path) -> None:
    target = tmp_path / "m.countless"
    others = [tmp_path / name for name in ("m.countless.checkpoint.partial", "n.countless.abcd1234.partial")]
    for other in others:
        other.write_bytes(b"another's")
    with subprocess.Popen([sys.executable, "-c", WRITE, target], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            (stray,) = tmp_path.glob("m.countless.????????.partial")
            assert remove_strays(target) == []
            assert stray.exists()
        finally:
            os.kill(process.pid, signal.SIGKILL)
    assert remove_strays(target) == [stray]
    assert sorted(tmp_path.iterdir()) == others


def test_nothing_is_left_of_a_write_that_fails(tmp_path: Path) -> None:
    def fails(partial: str) -> None:
        Path(partial).write_text("half")
        raise RuntimeError("no more")

    def works(partial: str) -> None:
        Path(partial).write_text("all")

    with pytest.raises(RuntimeError, match="no more"):
        write_whole(tmp_path / "t", fails)
    write_whole(tmp_path / "t", works)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert (tmp_path / "t").read_text() == "all"
    assert remove_strays(tmp_path / "no folder" / "t") == []
