"""Continues training on old and new rows, and measures the loss of both before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.tasks.task import Task, stream

PROBE_ROWS = 2_000  # new rows that are measured, and as many old ones


@dataclass(frozen=True)
class Retrained:
    """The result of training, and bits per unit of ``new`` and ``old`` rows before and after it."""

    trained: Trained
    bits_before: dict[str, float]
    bits_after: dict[str, float]


def retrain(
    task: Task, options: TrainOptions, new: int, *, stopped: bool, on_progress: Callable[[Progress], None]
) -> Retrained:
    """Train on the task's rows, of which the last ``new`` are new."""
    probes = {
        "new": torch.arange(task.rows - new, task.rows)[:PROBE_ROWS],
        "old": torch.arange(task.rows - new)[:PROBE_ROWS],
    }

    def bits() -> dict[str, float]:
        return {
            name: round(task.bits(rows, "masked", stream(options.seed, 0)), 4)
            for name, rows in probes.items()
            if len(rows)
        }

    before = bits()
    trained = train(task, options, stopped=stopped, on_progress=on_progress)
    return Retrained(trained, before, bits())
