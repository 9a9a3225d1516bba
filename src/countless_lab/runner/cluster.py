"""The jobs of a sweep as tasks of a Ray cluster, whose results come back to the sweep.

A task starts the same process as a sweep of one machine does, on whatever machine it is, and waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from countless.cluster.session import Cluster
from countless.cluster.shared import require_shared
from countless.errors import ClusterError
from countless_lab.runner.job import Job
from countless_lab.runner.process import TAIL, JobProcess
from countless_lab.runner.store import ResultStore

TRIES = 1  # more, if the machine of a job is lost
TURN = 0.2  # seconds after which a process that has ended is noticed


class ClusterTasks:
    """Runs jobs on a cluster, while entered: each is a task of this many CPUs.

    All machines must see the folder of results, in which jobs leave files for each other.
    """

    def __init__(self, address: str, folder: Path, max_jobs: int | None, threads: int) -> None:
        self.cluster = Cluster(address)
        self.folder, self.threads = folder.absolute(), threads
        self.max_jobs = max_jobs or 1
        self._all = max_jobs is None
        self._stack = ExitStack()

    def __enter__(self) -> ClusterTasks:
        with ExitStack() as stack:
            stack.enter_context(self.cluster)
            room = sum(machine.cpus // self.threads for machine in self.cluster.machines())
            if not room:
                raise ClusterError(f"no machine of the cluster has {self.threads} CPUs: ask for fewer")
            self.max_jobs = room if self._all else self.max_jobs
            require_shared(self.cluster, self.folder)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, job: Job, store: ResultStore) -> ClusterJob:
        log = store.log_path(job.name).absolute()
        remote = self.cluster.ray.remote(num_cpus=self.threads, max_retries=TRIES)(run)
        ref = remote.remote(job, str(self.folder), str(log), self.threads, str(Path.cwd()))
        return ClusterJob(self.cluster.ray, job, log, ref)

    def wait(self, workers: Sequence[ClusterJob], seconds: float) -> None:
        self.cluster.ray.wait([worker.ref for worker in workers], timeout=seconds)

    def stop(self, workers: Sequence[ClusterJob]) -> None:
        for worker in workers:
            self.cluster.ray.cancel(worker.ref, force=True)
            worker.log.unlink(missing_ok=True)
            worker.close()


class ClusterJob:
    """A job on the cluster. Its messages come through a file beside its log."""

    def __init__(self, ray: Any, job: Job, log: Path, ref: Any) -> None:
        self.job, self.log, self.ref = job, log, ref
        self._ray = ray
        self._read = 0
        self._ended = False
        self._exit_message = "the task ended without a result"

    def messages(self) -> Iterator[dict[str, Any]]:
        with contextlib.suppress(OSError):
            lines = _message_file(self.log).read_text(encoding="utf-8").splitlines()
            yield from ({"say": line} for line in lines[self._read :])
            self._read = len(lines)
        ready, _ = self._ray.wait([self.ref], timeout=0)
        if ready and not self._ended:
            self._ended = True
            try:
                yield json.loads(self._ray.get(self.ref))
            except self._ray.exceptions.RayError as error:
                self._exit_message = (
                    f"the task was lost ({type(error).__name__}): if memory was short, use fewer workers"
                )

    def has_ended(self) -> bool:
        return self._ended

    def exit_message(self) -> str:
        return self._exit_message

    def log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
        return ""

    def close(self) -> None:
        """Stop listening."""
        _message_file(self.log).unlink(missing_ok=True)


def run(job: Job, folder: str, log: str, threads: int, work_folder: str) -> str:
    """Run a job on a machine of the cluster, from the folder that the sweep was started in if it is there."""
    with contextlib.suppress(OSError):
        os.chdir(work_folder)
    worker = JobProcess(job, Path(folder), Path(log), threads)
    result = None
    try:
        while not worker.has_ended():
            for message in worker.messages():
                if "say" in message:
                    with open(_message_file(worker.log), "a", encoding="utf-8") as file:
                        file.write(" ".join(str(message["say"]).split()) + "\n")
                else:
                    result = message
            wait([] if worker.closed else [worker.fileno()], TURN)
        return json.dumps(result or {"error": worker.exit_message(), "traceback": worker.log_tail()})
    finally:
        worker.kill()
        worker.close()


def _message_file(log: Path) -> Path:
    return log.with_suffix(".said")
