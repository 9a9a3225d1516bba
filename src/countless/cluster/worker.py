"""A worker of a distributed training run, which uses the same training loop as on one machine."""

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

REPORT_SECONDS = 1.0  # seconds between two reports of progress


@dataclass(frozen=True)
class WorkerInstructions:
    """The instructions for every worker of a run."""

    recipe: Recipe
    codes: Path
    rows: int  # number of rows, from the first, to train on
    memory: Memory
    checkpoint: Path
    run_folder: Path
    threads: int
    save_every: float


def work(config: dict[str, WorkerInstructions]) -> None:
    """Train as a member of the team, whose process group Ray has started. Ray calls it again after losing a worker."""
    from ray.train.torch import get_device

    instructions = config["instructions"]
    team, interrupt = ProcessGroup(instructions.threads), Interrupt()
    run_folder = RunFolder(instructions.run_folder)
    reporter = _ProgressReporter(run_folder, interrupt)
    try:
        table = mapped_table(CodesFolder.open(instructions.codes), instructions.memory).sampled(instructions.rows, 0)
        trained = train(
            instructions.recipe.task(table, str(get_device())),
            instructions.recipe.options,
            fingerprint=table.fingerprint,
            checkpoint=instructions.checkpoint,
            resume=True,
            on_progress=reporter if team.leads else None,
            team=team,
            interrupt=interrupt,
            save_every=instructions.save_every,
        )
        if team.leads:
            run_folder.write_result(trained)
    except CountlessError as error:
        run_folder.write_error(error)


class _ProgressReporter:
    """Reports the progress of training about once a second, and checks whether to stop."""

    def __init__(self, run_folder: RunFolder, interrupt: Interrupt) -> None:
        self._run_folder, self._interrupt = run_folder, interrupt
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._last < REPORT_SECONDS and progress.fraction < 1.0:
            return
        self._last = time.monotonic()
        self._run_folder.write_progress(progress)
        self._interrupt.requested |= self._run_folder.stop_requested()
