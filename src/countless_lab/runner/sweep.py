"""A sweep: many jobs, each in a process of its own, whose results are stored as soon as they are finished.

A job that has a result is not run again, so a sweep that was stopped, or lost jobs, continues when it is called again.
All experiments of several steps are sweeps: the scoreboard, growth, ablations and the paper's exhibits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from countless.errors import CountlessError
from countless.train.interrupt import Interrupt
from countless_lab.runner.backend import Handle, JobBackend, RunningJob
from countless_lab.runner.job import Job, by_name, dependents
from countless_lab.runner.process import LocalProcesses
from countless_lab.runner.store import ResultStore

__all__ = ["Job", "ResultStore", "SweepListener", "SweepOutcome", "sweep"]

TURN = 0.2  # seconds after which a Ctrl-C is noticed


class SweepListener:
    """Receives the progress of a sweep. Each method does nothing by default."""

    def planned(self, done: int, jobs: int) -> None:
        """This many of the jobs have results already."""

    def started(self, name: str) -> None:
        """A job begins."""

    def said(self, name: str, line: str) -> None:
        """A job says what it is doing."""

    def finished(self, name: str, seconds: float) -> None:
        """A job has a result."""

    def failed(self, name: str, message: str) -> None:
        """A job failed, for this reason."""

    def dropped(self, names: tuple[str, ...], need: str) -> None:
        """Jobs that will not run, because ``need`` failed."""


@dataclass(frozen=True)
class SweepOutcome:
    """The number of results, those of earlier sweeps included; failures with their reasons; jobs that did not run."""

    done: int
    failed: dict[str, str]
    waiting: tuple[str, ...]


def sweep(
    jobs: Sequence[Job],
    folder: Path,
    workers: int | None = None,
    watch: SweepListener | None = None,
    threads: int | None = None,
    backend: JobBackend[Any] | None = None,
) -> SweepOutcome:
    """Run every job that has no result in ``folder``, as soon as what it needs is there, in the order given.

    ``workers`` processes run at once, as many as there are cores if None, each with this many ``threads``. A job that
    fails leaves its reason beside the results, and is tried again by the next sweep. Ctrl-C stops the processes. With a
    ``backend``, others run the jobs.
    """
    named = by_name(jobs)
    for option, value in (("workers", workers), ("threads", threads)):
        if value is not None and value < 1:
            raise CountlessError(f"{option} is {value}: give at least 1")
    workers = workers or usable_cores()
    threads = threads or max(1, usable_cores() // workers)
    store = ResultStore(folder)
    with store.lock(), Interrupt() as interrupt:
        state = _State(named, store, watch or SweepListener(), backend or LocalProcesses(workers, threads))
        try:
            while not interrupt.requested:
                state.start()
                if not state.running:
                    return state.outcome()
                state.listen(TURN)
            state.listen(0.0)  # store what is finished
            raise KeyboardInterrupt
        finally:
            state.backend.stop(list(state.running.values()))


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def unfinished(jobs: Mapping[str, Job], store: ResultStore) -> set[str]:
    """The jobs to run: those without a result, and those that they need whose files are gone."""
    missing = {name for name, job in jobs.items() if store.result(job) is None}
    pending = list(missing)
    while pending:
        for need in jobs[pending.pop()].needs:
            if need not in missing and not all(path.exists() for path in jobs[need].outputs(store.folder)):
                missing.add(need)
                pending.append(need)
    return missing


class _State(Generic[Handle]):
    """The state of a sweep."""

    def __init__(
        self, jobs: dict[str, Job], store: ResultStore, watch: SweepListener, backend: JobBackend[Handle]
    ) -> None:
        self.jobs, self.store, self.watch, self.backend = jobs, store, watch, backend
        self.done = jobs.keys() - unfinished(jobs, store)
        self.failed: dict[str, str] = {}
        self.pending = {name: job for name, job in jobs.items() if name not in self.done}  # to be started
        self.running: dict[str, Handle] = {}
        watch.planned(len(self.done), len(jobs))

    def start(self) -> None:
        """Start jobs whose needs are met, as many as may run at once."""
        for name, job in list(self.pending.items()):
            if len(self.running) >= self.backend.max_jobs:
                return
            if self.done.issuperset(job.needs):
                self.store.error_path(name).unlink(missing_ok=True)
                self.running[name] = self.backend.start(job, self.store)
                del self.pending[name]
                self.watch.started(name)

    def listen(self, seconds: float) -> None:
        """Wait this long for messages, read them, and notice which processes have ended."""
        self.backend.wait(list(self.running.values()), seconds)
        for name, worker in list(self.running.items()):
            for message in worker.messages():
                self._handle(worker, message)
            if worker.has_ended():
                if name not in self.done and name not in self.failed:
                    self._fail(worker, worker.exit_message(), worker.log_tail())
                if name in self.done or not worker.log_tail():
                    worker.log.unlink(missing_ok=True)
                worker.close()
                del self.running[name]

    def outcome(self) -> SweepOutcome:
        """The outcome so far."""
        waiting = tuple(name for name in self.jobs if name not in self.done and name not in self.failed)
        return SweepOutcome(len(self.done), dict(self.failed), waiting)

    def _handle(self, worker: RunningJob, message: dict[str, Any]) -> None:
        name = worker.job.name
        if "say" in message:
            self.watch.said(name, message["say"])
        elif "error" in message:
            self._fail(worker, message["error"], message["traceback"])
        else:
            self.store.write(worker.job, message["result"], message["seconds"])
            self.done.add(name)
            self.watch.finished(name, message["seconds"])

    def _fail(self, worker: RunningJob, message: str, details: str) -> None:
        name = worker.job.name
        self.store.write_error(name, f"{message}\n\n{details}")
        self.failed[name] = message
        self.watch.failed(name, message)
        dropped = tuple(
            dependent for dependent in dependents(name, list(self.jobs.values())) if dependent in self.pending
        )
        for dependent in dropped:
            del self.pending[dependent]
        if dropped:
            self.watch.dropped(dropped, name)
