"""One case in a process of its own, with limits of time and memory: a crash or a hang ends the case, not the run."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import logging
import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from countless_lab.runner.process import LIMITS

LOG_BYTES = 2_000  # of the beginning, and of the end, of a process's standard error


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory of a case; ``memory`` None is no limit."""

    seconds: float = 300.0
    memory: int | None = 6 * 1024**3


class ChildProcesses:
    """Starts processes by forking one that has imported the product, so that a case does not wait for imports."""

    def __init__(self, limits: Limits | None = None, preload: tuple[str, ...] = ()) -> None:
        self._limits = limits or Limits()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["countless", *preload])
        for name in LIMITS:  # the process that is forked inherits them
            os.environ.setdefault(name, "1")

    def run(self, job: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
        """The result of ``job``; or None, and how its process ended: by a crash, or because of a limit."""
        receiver, sender = self._context.Pipe(duplex=False)
        with tempfile.NamedTemporaryFile(prefix="countless-fuzz-", suffix=".log") as log:
            process = self._context.Process(target=_run, args=(sender, log.name, self._limits.memory, job, *arguments))
            process.start()
            sender.close()
            try:
                if not receiver.poll(self._limits.seconds):
                    return None, f"hangs: it was ended after {self._limits.seconds:g} s{_output_of(log.name)}"
                return receiver.recv(), None
            except EOFError:
                process.join()
                return None, f"crashed, {_fate(process.exitcode)}{_output_of(log.name)}"
            finally:
                _end(process.pid)
                process.join()
                receiver.close()


@contextlib.contextmanager
def limited_processor_time(seconds: float) -> Iterator[None]:
    """End the process if this block takes more processor time; it prints its stack first."""
    with contextlib.suppress(io.UnsupportedOperation):  # in a test, there may be no file to print to
        faulthandler.register(signal.SIGPROF, chain=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _run(sender: Connection, log: str, memory: int | None, job: Callable[..., Any], *arguments: Any) -> None:
    """Run the job in the child. Ctrl-C reaches the parent alone, and the output of a crash goes to a file."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable()
    logging.disable(logging.WARNING)
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sender.send(job(*arguments))


def _end(pid: int | None) -> None:
    """End a process and those that it started."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _fate(code: int | None) -> str:
    return f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with exit code {code}"


def _output_of(log: str) -> str:
    text = Path(log).read_text(encoding="utf-8", errors="replace").strip()
    if len(text) > 2 * LOG_BYTES:
        text = f"{text[:LOG_BYTES]}\n...\n{text[-LOG_BYTES:]}"
    return f":\n{text}" if text else ""
