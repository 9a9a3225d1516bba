"""Back ends that run the jobs of a sweep: processes of this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from countless_lab.runner.job import Job
from countless_lab.runner.store import ResultStore


class RunningJob(Protocol):
    """A job that was started, until it is over."""

    job: Job
    log: Path

    def messages(self) -> Iterator[dict[str, Any]]:
        """New messages since the last call: lines, and at the end the result or the error."""
        ...

    def has_ended(self) -> bool:
        """Whether it has ended and all its messages were read."""
        ...

    def exit_message(self) -> str:
        """How it ended, if it sent no result."""
        ...

    def log_tail(self) -> str:
        """The end of the log."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


Handle = TypeVar("Handle", bound=RunningJob)


class JobBackend(Protocol[Handle]):
    """A back end: it starts and stops jobs."""

    @property
    def max_jobs(self) -> int:
        """How many jobs may run at once."""
        ...

    def start(self, job: Job, store: ResultStore) -> Handle:
        """Start a job."""
        ...

    def wait(self, workers: Sequence[Handle], seconds: float) -> None:
        """Wait for a message of any of them, at most this long."""
        ...

    def stop(self, workers: Sequence[Handle]) -> None:
        """End the jobs."""
        ...
