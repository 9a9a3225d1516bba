"""Timing of the stages of a fit."""

from __future__ import annotations

import os
import time
from typing import Any

from countless.estimator.fitting.learning import Listener

OPENING = "opening the table"  # the time before the first stage is announced


def _processor_seconds() -> float:
    """Processor time of this process and of its child processes that have ended."""
    return sum(os.times()[:4])


class StageTimer(Listener):
    """Forwards everything to another listener, and times the stages.

    >>> timer = StageTimer(Listener())
    >>> timer.stage("training")
    >>> [stage["name"] for stage in timer.stop()]
    ['opening the table', 'training']
    """

    def __init__(self, listener: Listener) -> None:
        self._stage = listener.stage
        forwarded = (name for name in dir(Listener) if not name.startswith("_") and name != "stage")
        vars(self).update({name: getattr(listener, name) for name in forwarded})
        self._starts: list[tuple[str, float, float]] = [(OPENING, time.perf_counter(), _processor_seconds())]

    def stop(self) -> list[dict[str, Any]]:
        """Every stage in order, with its wall and processor seconds; the last one ends now."""
        ends = [*self._starts[1:], ("", time.perf_counter(), _processor_seconds())]
        return [
            {"name": name, "seconds": round(end - start, 3), "cpu_seconds": round(cpu_end - cpu, 3)}
            for (name, start, cpu), (_, end, cpu_end) in zip(self._starts, ends, strict=True)
        ]

    def stage(self, name: str) -> None:
        self._starts.append((name, time.perf_counter(), _processor_seconds()))
        self._stage(name)
