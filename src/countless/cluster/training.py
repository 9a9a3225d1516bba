"""Training on a cluster with Ray Train: workers split every batch, and lost workers are replaced."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless.cluster.messages import RunFolder
from countless.cluster.session import Cluster, ClusterNode
from countless.cluster.worker import WorkerInstructions, work
from countless.data.encoding.memory_limit import Memory
from countless.errors import ClusterError
from countless.train.interrupt import Interrupt
from countless.train.loop import CHECKPOINT_SECONDS, Progress, Trained
from countless.train.tasks.recipe import Recipe, TrainingTable, train_here

MOST_FAILURES = 20  # failures of workers before a run ends with an error
POLL_SECONDS = 0.25  # between checks for progress and Ctrl-C
BACKENDS = "cpu:gloo,cuda:nccl"


@dataclass(frozen=True)
class Workers:
    """The number of training processes, and the CPUs of each. Each also has a GPU if there are enough."""

    count: int
    threads: int
    gpus: bool = False

    @classmethod
    def on(cls, machines: list[ClusterNode], count: int | None, threads: int) -> Workers:
        """``count`` workers on these machines; by default one for each GPU, or for each machine."""
        cpus, gpus = (
            sum(numbers) for numbers in zip(*((machine.cpus, machine.gpus) for machine in machines), strict=True)
        )
        count = count or gpus or len(machines)
        capacity = sum(machine.cpus // threads for machine in machines)
        if count > capacity:
            raise ClusterError(
                f"the cluster has room for {capacity} workers of {threads} CPUs each, not for {count}: it has "
                f"{cpus} CPUs on {len(machines)} machines; ask for fewer with --workers or --threads"
            )
        return cls(count, threads, gpus >= count)


@dataclass
class ClusterTrainer:
    """A :class:`~countless.train.tasks.recipe.Trainer` on a cluster.

    All machines can read ``folder``, and ``codes``, the folder with the codes of the table.
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
        """Train the task of ``recipe`` on ``table``. The workers read its codes from the folder."""
        checkpoint_path = checkpoint or self.folder / "checkpoint"
        if stopped:  # nothing is trained, so no worker is needed
            return train_here(
                recipe, table, checkpoint=checkpoint_path, resume=resume, stopped=True, on_progress=on_progress
            )
        if not resume:
            checkpoint_path.unlink(missing_ok=True)
        run_folder = RunFolder(self.folder / "run")
        shutil.rmtree(run_folder.folder, ignore_errors=True)
        run_folder.folder.mkdir(parents=True)
        instructions = WorkerInstructions(
            recipe,
            self.codes,
            _rows(table),
            self.memory,
            checkpoint_path.absolute(),
            run_folder.folder,
            self.workers.threads,
            self.save_every,
        )
        self._run(instructions, run_folder, on_progress, checkpoint_path)
        return run_folder.result()

    def _run(
        self,
        instructions: WorkerInstructions,
        run_folder: RunFolder,
        on_progress: Callable[[Progress], None],
        checkpoint_path: Path,
    ) -> None:
        """Run Ray's trainer in a thread, report its progress, and forward Ctrl-C to the workers."""
        failures: list[BaseException] = []

        def fit() -> None:
            try:
                self._trainer(instructions, run_folder).fit()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=fit, daemon=True)
        reported: Progress | None = None
        with Interrupt() as interrupt:
            thread.start()
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                progress = run_folder.progress()
                if progress is not None and progress != reported:
                    on_progress(progress)
                    reported = progress
                if interrupt.requested:
                    run_folder.request_stop()
        if failures:
            reason = (str(failures[0]).strip().splitlines() or [type(failures[0]).__name__])[-1]
            raise ClusterError(
                f"training on the cluster failed: {reason}; --resume continues from {checkpoint_path}"
            ) from None

    def _trainer(self, instructions: WorkerInstructions, run_folder: RunFolder) -> Any:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        workers = self.workers
        return TorchTrainer(
            work,
            train_loop_config={"instructions": instructions},
            torch_config=TorchConfig(backend=BACKENDS if workers.gpus else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=workers.count,
                use_gpu=workers.gpus,
                resources_per_worker={"CPU": workers.threads} | ({"GPU": 1} if workers.gpus else {}),
            ),
            run_config=RunConfig(
                name="ray",
                storage_path=str(run_folder.folder),
                failure_config=FailureConfig(max_failures=MOST_FAILURES),
            ),
        )


def _rows(table: TrainingTable) -> int:
    """The number of rows of a table, which is smaller than that of the folder if the table is a sample."""
    return len(table.matrix()) if table.schema.coded else len(table.strings[0].symbols)
