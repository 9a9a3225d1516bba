"""What a whole process costs: its start, and the memory of one that serves a model."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from countless.bench.child import run_job
from countless.errors import CountlessError


def serving(model: Path, clauses: list[str]) -> dict[str, Any]:
    """Peak memory of a process that loads ``model`` and answers ``clauses``, and whether it has loaded PyTorch."""
    facts = run_job("serve", model=str(model), clauses=clauses, repeats=1, batch=None)
    return {"serving_mb": round(facts["peak_bytes"] / 1e6, 1), "torch_loaded": facts["torch_imported"]}


def start_up(model: Path, clause: str, repeats: int = 7) -> dict[str, Any]:
    """The time of a whole ``countless estimate``, beside Python alone with NumPy; the least of several each."""
    ask = [sys.executable, "-m", "countless.cli.main", "estimate", str(model), clause]
    numpy = [sys.executable, "-c", "import numpy"]
    times = [(_seconds(ask), _seconds(numpy)) for _ in range(repeats)]
    asking, importing = (min(column) for column in zip(*times, strict=True))
    return {"estimate_ms": round(1e3 * asking, 1), "import_numpy_ms": round(1e3 * importing, 1)}


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CountlessError(f"a process that was to be timed failed: {done.stderr.strip()[-200:]}")
    return time.perf_counter() - started
