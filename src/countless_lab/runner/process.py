"""The processes of jobs, as the sweep starts, reads and stops them."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from countless.errors import CountlessError, DataError
from countless_lab.runner import child
from countless_lab.runner.child import GRACE
from countless_lab.runner.job import Job
from countless_lab.runner.store import ResultStore

MAX_MESSAGES = 1_000  # that are read of one process before the next one has its turn
LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # read when NumPy and PyTorch are loaded
TAIL = 4_000  # characters of a log, which show how a process died


class JobProcess:
    """A new Python process that runs one job and ends, so that its memory is freed.

    It leads a session of its own: a Ctrl-C at the terminal reaches the sweep alone.
    """

    def __init__(self, job: Job, folder: Path, log: Path, threads: int | None) -> None:
        self.job = job
        self.log = log
        self.result_at: float | None = None  # when the result, or the error, was heard
        order = pickle.dumps((job, folder))
        try:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError as error:
            raise DataError(f"cannot write {log}: {error.strerror}; free some space or choose another -o") from None
        try:
            self.process, self._connection = _start(output, _environment(threads, job.one_thread), job.name)
        finally:
            os.close(output)
        self.closed = False
        with contextlib.suppress(OSError):  # the exit code shows one that is dead already
            self._connection.send_bytes(json.dumps(sys.path).encode())
            self._connection.send_bytes(order)

    def fileno(self) -> int:
        """What to wait for."""
        return self._connection.fileno()

    def messages(self) -> Iterator[dict[str, Any]]:
        """What has been said since the last call."""
        for _ in range(MAX_MESSAGES):
            try:
                if self.closed or not self._connection.poll():
                    return
                message = json.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                self.closed = True
                return
            if "say" not in message:
                self.result_at = time.monotonic()
            yield message

    def has_ended(self) -> bool:
        """Whether the process has ended and all messages were read. After its result it may run ``GRACE`` seconds."""
        if self.closed:
            self._wait(GRACE)
        if self.process.poll() is None and (
            self.closed or (self.result_at and time.monotonic() - self.result_at > GRACE)
        ):
            self.kill()
        return self.process.poll() is not None and (self.closed or not self._connection.poll())

    def exit_message(self) -> str:
        """How a process ended that sent no result."""
        code = self.process.returncode
        if code < 0:
            name = {member.value: member.name for member in signal.Signals}.get(-code, f"signal {-code}")
            return f"the process was ended by {name}: if memory was short, use fewer workers or a smaller table"
        return f"the process ended with code {code} and no result: see {self.job.name}.error.txt"

    def log_tail(self) -> str:
        """The end of the log."""
        with contextlib.suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
        return ""

    def kill(self) -> None:
        """End the process, and what it has started, at once."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """Stop listening."""
        self._connection.close()
        self.closed = True

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))


@dataclass(frozen=True)
class LocalProcesses:
    """Runs jobs in processes of this machine, ``max_jobs`` at once.

    Each has this many ``threads``; None sets no limit, so that what is measured is what a user gets.
    """

    max_jobs: int
    threads: int | None

    def start(self, job: Job, store: ResultStore) -> JobProcess:
        return JobProcess(job, store.folder, store.log_path(job.name), self.threads)

    def wait(self, workers: Sequence[JobProcess], seconds: float) -> None:
        wait([worker.fileno() for worker in workers if not worker.closed], seconds)

    def stop(self, workers: Sequence[JobProcess]) -> None:
        """End the processes with SIGTERM, and with SIGKILL those that do not end in time."""
        try:
            for worker in workers:
                worker.process.terminate()
            end = time.monotonic() + GRACE
            for worker in workers:
                worker._wait(end - time.monotonic())
        finally:
            for worker in workers:
                worker.kill()
                worker.close()
                worker.log.unlink(missing_ok=True)


def _environment(threads: int | None, one_thread: bool) -> dict[str, str]:
    """The environment of a process, with its limits of threads, which are read when libraries are loaded."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= {"OMP_WAIT_POLICY": "PASSIVE", "COUNTLESS_THREADS": str(threads)}
        environment |= dict.fromkeys(LIMITS, str(threads))
    if one_thread:
        environment |= dict.fromkeys(LIMITS, "1")
    return environment


def _start(output: int, environment: dict[str, str], name: str) -> tuple[subprocess.Popen[bytes], Connection[Any, Any]]:
    """A process with a connection to it."""
    ours, theirs = Pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", str(Path(child.__file__).resolve()), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise CountlessError(f"cannot start a process for {name}: {error.strerror}; use fewer workers") from None
    finally:
        theirs.close()
    return process, ours
