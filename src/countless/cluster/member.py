"""A worker of a distributed training run: the same training loop as on one machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from countless.cluster.messages import RunFolder
from countless.data.encoding.code_files import CodesFolder
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import mapped_table
from countless.errors import CountlessError
from countless.train.interrupt import Interrupt
from countless.train.loop import Progress, train
from countless.train.parallel.team import ProcessGroup
from countless.train.tasks.recipe import Recipe

TOLD_EVERY = 1.0  # seconds between two reports of progress


@dataclass(frozen=True)
class WorkerInstructions:
    """The instructions for every worker of a run."""

    recipe: Recipe
    codes: Path
    rows: int  # of which the first ones are trained on
    memory: Memory
    checkpoint: Path
    letters: Path
    threads: int
    save_every: float


def work(config: dict[str, WorkerInstructions]) -> None:
    """Train as one of the team, whose process group Ray has started: once, and again whenever a worker was lost."""
    from ray.train.torch import get_device

    order = config["order"]
    team, interrupt = ProcessGroup(order.threads), Interrupt()
    letters = RunFolder(order.letters)
    teller = _Teller(letters, interrupt)
    try:
        table = mapped_table(CodesFolder.open(order.codes), order.memory).sampled(order.rows, 0)
        trained = train(
            order.recipe.task(table, str(get_device())),
            order.recipe.options,
            fingerprint=table.fingerprint,
            checkpoint=order.checkpoint,
            resume=True,
            on_progress=teller if team.leads else None,
            team=team,
            interrupt=interrupt,
            save_every=order.save_every,
        )
        if team.leads:
            letters.tell_result(trained)
    except CountlessError as error:
        letters.tell_error(error)


class _Teller:
    """Reports the progress of training about once a second, and checks whether to stop."""

    def __init__(self, letters: RunFolder, interrupt: Interrupt) -> None:
        self._letters, self._interrupt = letters, interrupt
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._last < TOLD_EVERY and progress.fraction < 1.0:
            return
        self._last = time.monotonic()
        self._letters.tell_progress(progress)
        self._interrupt.requested |= self._letters.asked_to_stop()
