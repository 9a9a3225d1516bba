"""What a whole process costs: its start, and the memory of one that serves a model."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from countless.errors import CountlessError

SERVE = """
import json, sys
from countless import load
from countless.bench.process import peak_memory
estimator = load(sys.argv[1])
for clause in sys.argv[2:]:
    estimator.estimate(clause)
print(json.dumps({"bytes": peak_memory(), "torch": "torch" in sys.modules}))
"""


def serving(model: Path, clauses: list[str]) -> dict[str, Any]:
    """Peak memory of a process that loads ``model`` and answers ``clauses``, and whether it has loaded PyTorch."""
    facts: dict[str, Any] = json.loads(_run([sys.executable, "-c", SERVE, str(model), *clauses]))
    return {"serving_mb": round(facts["bytes"] / 1e6, 1), "torch_loaded": facts["torch"]}


def peak_memory() -> int:
    """The most bytes that this process has held.

    Linux hands what rusage says on from a parent to the program it starts, so there the process's own account is read.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def start_up(model: Path, clause: str, repeats: int = 7) -> dict[str, Any]:
    """The time of a whole ``countless estimate``, beside Python alone with NumPy; the least of several each."""
    ask = [sys.executable, "-m", "countless.cli.main", "estimate", str(model), clause]
    numpy = [sys.executable, "-c", "import numpy"]
    times = [(_seconds(ask), _seconds(numpy)) for _ in range(repeats)]
    asking, importing = (min(column) for column in zip(*times, strict=True))
    return {"estimate_ms": round(1e3 * asking, 1), "import_numpy_ms": round(1e3 * importing, 1)}


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    _run(command)
    return time.perf_counter() - started


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CountlessError(f"a process that was to be measured failed: {done.stderr.strip()[-200:]}")
    return done.stdout
