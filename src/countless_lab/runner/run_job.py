"""Jobs in processes of their own, so that each is measured alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from countless.errors import CountlessError

LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # read when NumPy and PyTorch are loaded


def limited(threads: int) -> dict[str, str]:
    """The environment of a process that has so many threads for linear algebra."""
    return {**os.environ, **dict.fromkeys(LIMITS, str(threads))}


def run_job(
    name: str, one_thread: bool = False, module: str = "countless_lab.growth.jobs", **arguments: Any
) -> dict[str, Any]:
    """What the job ``name`` of ``module`` finds in a fresh Python.

    The process hears no Ctrl-C, to which a fit would answer by keeping its model: whatever interrupts the wait ends it.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=limited(1) if one_thread else None,  # one where one query is timed; batches bring threads of their own
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps(arguments))
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started itself
        process.wait()
        raise
    if process.returncode != 0:
        raise CountlessError(f"the process that was to {name} {_fate(process.returncode, err)}")
    facts: dict[str, Any] = json.loads(out)
    if "error" in facts:
        raise CountlessError(facts["error"])
    return facts


def _fate(code: int, err: str) -> str:
    if code < 0:
        return f"was ended by signal {-code}: if memory was short, try a smaller --rows-most"
    last = err.strip().splitlines()[-1:] or ["it gave no reason"]
    return f"failed: {last[0]}"
