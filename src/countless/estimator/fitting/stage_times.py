"""Timing of the stages of a fit."""

from __future__ import annotations

import os
import time
from typing import Any

from countless.estimator.fitting.learning import Listener

OPENING = "opening the table"  # what happens before the first stage is announced


def _processor_seconds() -> float:
    """Of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


class StageTimer(Listener):
    """Passes everything on to another listener, and times the stages.

    >>> timer = StageTimer(Listener())
    >>> timer.stage("training")
    >>> [stage["name"] for stage in timer.stop()]
    ['opening the table', 'training']
    """

    def __init__(self, listener: Listener) -> None:
        self._stage = listener.stage
        passed_on = (name for name in dir(Listener) if not name.startswith("_") and name != "stage")
        vars(self).update({name: getattr(listener, name) for name in passed_on})
        self._begun: list[tuple[str, float, float]] = [(OPENING, time.perf_counter(), _processor_seconds())]

    def stop(self) -> list[dict[str, Any]]:
        """Every stage in order, with its wall and processor seconds; the last one ends now."""
        ends = [*self._begun[1:], ("", time.perf_counter(), _processor_seconds())]
        return [
            {"name": name, "seconds": round(end - start, 3), "cpu_seconds": round(cpu_end - cpu, 3)}
            for (name, start, cpu), (_, end, cpu_end) in zip(self._begun, ends, strict=True)
        ]

    def stage(self, name: str) -> None:
        self._begun.append((name, time.perf_counter(), _processor_seconds()))
        self._stage(name)
