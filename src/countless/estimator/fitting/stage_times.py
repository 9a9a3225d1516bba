"""Timing of the stages of a fit."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from countless.data.columns.schema import Schema
from countless.data.progress import ScanProgress
from countless.estimator.fitting.learning import Listener
from countless.workload import WorkloadColumns

if TYPE_CHECKING:
    from countless.train.loop import Progress

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
        self._listener = listener
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
        self._listener.stage(name)

    def loading(self, done: int, expected: int | None) -> None:
        self._listener.loading(done, expected)

    def table(self, schema: Schema) -> None:
        self._listener.table(schema)

    def notice(self, message: str) -> None:
        self._listener.notice(message)

    def workload(self, asked: WorkloadColumns) -> None:
        self._listener.workload(asked)

    def training(self, progress: Progress) -> None:
        self._listener.training(progress)

    def reading(self, reading: ScanProgress) -> None:
        self._listener.reading(reading)

    def calibrating(self, done: int, total: int) -> None:
        self._listener.calibrating(done, total)
