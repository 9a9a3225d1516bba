"""Worker threads that compute answers, so that the event loop stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from countless.cancellation import ComputationCancelledError, cancellable
from countless.serve.answer_cache import Kept
from countless.serve.api.errors import RefusalError, too_long

Compute = Callable[[], bytes]
Left = asyncio.Future[None]
STUCK_AFTER = 2.0  # seconds that a thread may still be at work for nobody

_own = threading.local()


@dataclass
class _Job:
    waiting: int = 0  # requests
    future: Future[bytes] = field(default_factory=Future)
    left: float | None = None  # when the last request was given up
    clauses: int | None = None  # answered so far, of a question that has several

    def wanted(self) -> bool:
        return self.waiting > 0

    def stuck(self) -> bool:
        late = self.left is not None and time.monotonic() - self.left > STUCK_AFTER
        return late and not self.wanted() and self.future.running()


def note_progress(clauses: int) -> None:
    """Say how many clauses of the question that this thread works on are answered, for the refusal if it is late."""
    job = getattr(_own, "job", None)
    if job is not None:
        job.clauses = clauses


class Work:
    """So many ``threads``, and at most ``most`` different questions that they work on or that wait for them.

    Equal questions that are asked at the same time are answered together. A request waits ``seconds`` for its answer;
    a question whose client is gone is dropped, or cancelled at its next step. Answers are
    kept, if there is where.
    """

    def __init__(self, threads: int, most: int, seconds: float, kept: Kept | None = None) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="countless-serve")
        self._most = most
        self._seconds = seconds
        self._kept = kept
        self._jobs: dict[str, _Job] = {}

    @property
    def busy(self) -> bool:
        """Whether a thread is at work."""
        return any(job.future.running() for job in list(self._jobs.values()))

    @property
    def stuck(self) -> int:
        """How many threads are at work for nobody, and do not stop."""
        return sum(job.stuck() for job in list(self._jobs.values()))

    @property
    def questions(self) -> int:
        """How many different questions are worked on or wait."""
        return len(self._jobs)

    @property
    def all_stuck(self) -> bool:
        """Whether no thread is left that could answer."""
        return self.stuck >= self.threads

    async def answer(self, asked: str, compute: Compute, left: Left | None = None) -> tuple[bytes, bool]:
        """What ``compute`` gives, and whether it had been kept since ``asked`` was asked before.

        Who asks has gone when ``left`` is done.
        """
        if self._kept is not None and (kept := self._kept.get(asked)) is not None:
            return kept, True
        while True:
            with contextlib.suppress(ComputationCancelledError):  # just before this request came
                return await self._computed_for(asked, compute, left), False

    async def _computed_for(self, asked: str, compute: Compute, left: Left | None) -> bytes:
        job = self._jobs.get(asked)
        if job is None:
            job = self._start(asked, compute)
        else:
            job.waiting += 1
        future = asyncio.wrap_future(job.future)
        future.add_done_callback(_seen)
        try:
            ends: list[asyncio.Future[Any]] = [future] if left is None else [future, left]
            done, _ = await asyncio.wait(ends, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise too_long(self._seconds, job.clauses, started=job.future.running())
            if future not in done:
                raise RefusalError(499, "GoneError", "who asked has gone")
            return future.result()
        finally:
            job.waiting -= 1
            job.left = time.monotonic()
            if not job.waiting and job.future.cancel():
                self._jobs.pop(asked, None)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, asked: str, compute: Compute) -> _Job:
        if len(self._jobs) >= self._most:
            raise RefusalError(
                429, "TooManyRequestsError", "too many requests are waiting: try again later", retry_after=1
            )
        loop = asyncio.get_running_loop()
        job = self._jobs[asked] = _Job(waiting=1)
        job.future = self._pool.submit(self._computed, asked, compute, job)
        job.future.add_done_callback(lambda future: _on(loop, self._forget, asked, job))
        return job

    def _computed(self, asked: str, compute: Compute, job: _Job) -> bytes:
        _own.job = job
        try:
            with cancellable(job.wanted):
                answer = compute()
        except ComputationCancelledError:
            self._jobs.pop(asked, None)  # who asks from now on begins anew
            raise
        finally:
            _own.job = None  # its error would keep the model alive that it came from
        if self._kept is not None:
            self._kept.put(asked, answer)
        return answer

    def _forget(self, asked: str, job: _Job) -> None:
        if self._jobs.get(asked) is job:
            del self._jobs[asked]


def _seen(future: asyncio.Future[bytes]) -> None:
    """Record an error of a call whose caller is gone."""
    if not future.cancelled():
        future.exception()


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[str, _Job], None], asked: str, job: _Job) -> None:
    """Call in the loop's thread, unless the service has ended meanwhile."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, asked, job)
