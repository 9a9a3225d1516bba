"""Measures training speed on this machine with a few steps."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from countless.train.adam import Adam
from countless.train.parallel.gradient_workers import GradientWorkers, parts_of
from countless.train.tasks.task import Task, stream

PILOT_ROWS = 4_096  # of the table
PILOT_SECONDS = 1.0
PILOT_STEPS = (3, 30)  # at least and at most


def rows_per_second(task: Task, clock: Callable[[], float] = time.monotonic) -> float:
    """The number of rows that training visits per second. This changes the task's weights."""
    optimizer = Adam(task.model.parameters())
    generator = stream(0, 0)
    least, most = PILOT_STEPS
    started, steps = clock(), 0
    with GradientWorkers(task, 0, parts_of(task) if clock is time.monotonic else 1) as workers:
        for step in range(most + 1):
            if step == 1:  # the first step allocates
                started, steps = clock(), 0
            elif steps >= least and clock() - started > PILOT_SECONDS:
                break
            rows = torch.randint(task.rows, (task.batch,), generator=generator)
            workers.backward(rows, generator, 0.0, step, len(rows))
            optimizer.step(learning_rate=1e-6)
            steps += 1
    return steps * task.batch / max(clock() - started, 1e-9)
