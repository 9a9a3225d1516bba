"""The training rate in rows a second of wall time, alone and beside busy processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from countless.data.sources.source import Source

ROWS = 50_000  # of the sample that is trained on


def training_rates(table: Any, seconds: float, rounds: int = 1, exclude: tuple[str, ...] = ()) -> dict[str, Any]:
    """Medians of the rate ``alone`` and of that beside a busy loop per core, ``busy``, and their ratio.

    A round is a fit of ``seconds`` seconds alone and one beside the loops. Other work on the machine affects both.
    """
    source = Source.open(table)
    sample = source.sampled(ROWS, 0) if source.count() > ROWS else source
    alone, busy = [], []
    for _ in range(rounds):
        alone.append(_rate(sample, seconds, exclude))
        with busy_loops(os.cpu_count() or 1, longest=10 * seconds + 120):
            busy.append(_rate(sample, seconds, exclude))
    ratio = round(statistics.median(beside / free for beside, free in zip(busy, alone, strict=True)), 3)
    return {"alone": statistics.median(alone), "busy": statistics.median(busy), "ratio": ratio}


@contextmanager
def busy_loops(count: int, longest: float) -> Iterator[None]:
    """Run ``count`` processes that each use a core fully, inside this block and for ``longest`` seconds at most."""
    loop = f"import time\nend = time.monotonic() + {longest}\nwhile time.monotonic() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _rate(sample: Source, seconds: float, exclude: tuple[str, ...]) -> float:
    """Rows a second of the network that learns the columns, or else of the one that learns text."""
    from countless import fit

    report = fit(sample, budget=seconds, exclude=exclude, summary=False, evidence="none", calibrate=False).report
    return float((report if "rows_per_second" in report else report["text"])["rows_per_second"])
