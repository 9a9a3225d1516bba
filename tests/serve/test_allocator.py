"""Memory of freed arrays goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np
from countless.serve.allocator import give_memory_back
from countless.serve.metrics import resident_bytes
assert give_memory_back()
before = resident_bytes()
arrays, walls = [], []
for _ in range(40):  # a small array after each large one keeps a heap from shrinking
    arrays.append(np.ones(4_000_000, dtype=np.uint8))
    walls.append(np.ones(1_000, dtype=np.uint8))
held = resident_bytes()
arrays.clear()
assert held - before > 150e6
assert resident_bytes() - before < 20e6, resident_bytes() - before
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator is meant")
def test_freed_arrays_leave_no_holes() -> None:
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
