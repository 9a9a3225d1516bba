"""Training on a cluster with Ray Train: workers split every batch, and lost workers are replaced."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless.cluster.member import WorkerInstructions, work
from countless.cluster.messages import RunFolder
from countless.cluster.session import Cluster, ClusterNode
from countless.data.encoding.memory_limit import Memory
from countless.errors import ClusterError
from countless.train.interrupt import Interrupt
from countless.train.loop import CHECKPOINT_SECONDS, Progress, Trained
from countless.train.tasks.recipe import Recipe, TrainingTable, train_here

MOST_FAILURES = 20  # of a run, before it ends with an error
TURN = 0.25  # seconds after which news and a Ctrl-C are noticed
BACKENDS = "cpu:gloo,cuda:nccl"


@dataclass(frozen=True)
class Workers:
    """How many processes train together, and the CPUs of each. Each has a GPU too if there are enough of them."""

    count: int
    threads: int
    gpus: bool = False

    @classmethod
    def on(cls, machines: list[ClusterNode], count: int | None, threads: int) -> Workers:
        """``count`` workers on these machines; by default one for each GPU, or for each machine."""
        cpus, gpus = (sum(number) for number in zip(*((each.cpus, each.gpus) for each in machines), strict=True))
        count = count or gpus or len(machines)
        room = sum(machine.cpus // threads for machine in machines)
        if count > room:
            raise ClusterError(
                f"the cluster has room for {room} workers of {threads} CPUs each, not for {count}: it has {cpus} CPUs "
                f"on {len(machines)} machines; ask for fewer with --workers or --threads"
            )
        return cls(count, threads, gpus >= count)


@dataclass
class ClusterTrainer:
    """A :class:`~countless.train.tasks.recipe.Trainer` on a cluster.

    ``folder`` is one that all its machines can read, and so is ``codes``, the folder of the codes of the table to come.
    """

    cluster: Cluster
    folder: Path
    workers: Workers
    codes: Path
    memory: Memory
    save_every: float = CHECKPOINT_SECONDS

    def __call__(
        self,
        recipe: Recipe,
        table: TrainingTable,
        *,
        checkpoint: Path | None,
        resume: bool,
        stopped: bool,
        on_progress: Callable[[Progress], None],
    ) -> Trained:
        """Train what ``recipe`` makes of ``table``, of which the workers read the codes from their folder."""
        place = checkpoint or self.folder / "checkpoint"
        if stopped:  # nothing will be trained: no worker is needed for that
            return train_here(recipe, table, checkpoint=place, resume=resume, stopped=True, on_progress=on_progress)
        if not resume:
            place.unlink(missing_ok=True)
        letters = RunFolder(self.folder / "run")
        shutil.rmtree(letters.folder, ignore_errors=True)
        letters.folder.mkdir(parents=True)
        order = WorkerInstructions(
            recipe,
            self.codes,
            _rows(table),
            self.memory,
            place.absolute(),
            letters.folder,
            self.workers.threads,
            self.save_every,
        )
        self._run(order, letters, on_progress, place)
        return letters.result()

    def _run(
        self, order: WorkerInstructions, letters: RunFolder, on_progress: Callable[[Progress], None], place: Path
    ) -> None:
        """Let Ray train, in a thread of its own, and report its progress; Ctrl-C is passed on."""
        failures: list[BaseException] = []

        def fit() -> None:
            try:
                self._trainer(order, letters).fit()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=fit, daemon=True)
        told: Progress | None = None
        with Interrupt() as interrupt:
            thread.start()
            while thread.is_alive():
                thread.join(TURN)
                progress = letters.progress()
                if progress is not None and progress != told:
                    on_progress(progress)
                    told = progress
                if interrupt.requested:
                    letters.ask_to_stop()
        if failures:
            reason = (str(failures[0]).strip().splitlines() or [type(failures[0]).__name__])[-1]
            raise ClusterError(f"training on the cluster failed: {reason}; --resume continues from {place}") from None

    def _trainer(self, order: WorkerInstructions, letters: RunFolder) -> Any:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        workers = self.workers
        return TorchTrainer(
            work,
            train_loop_config={"order": order},
            torch_config=TorchConfig(backend=BACKENDS if workers.gpus else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=workers.count,
                use_gpu=workers.gpus,
                resources_per_worker={"CPU": workers.threads} | ({"GPU": 1} if workers.gpus else {}),
            ),
            run_config=RunConfig(
                name="ray",
                storage_path=str(letters.folder),
                failure_config=FailureConfig(max_failures=MOST_FAILURES),
            ),
        )


def _rows(table: TrainingTable) -> int:
    """How many rows of the folder a table has: some are left out if it is a sample."""
    return len(table.matrix()) if table.schema.coded else len(table.strings[0].symbols)
