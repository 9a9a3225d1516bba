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
from countless.serve.answer_cache import AnswerCache
from countless.serve.api.errors import RefusalError, too_long

Compute = Callable[[], bytes]
Disconnect = asyncio.Future[None]
STUCK_AFTER = 2.0  # seconds after which a thread that works on a cancelled question counts as stuck

_current = threading.local()


@dataclass
class _Job:
    waiting: int = 0  # requests
    future: Future[bytes] = field(default_factory=Future)
    ended_at: float | None = None  # when the latest request got its answer or gave up
    clauses: int | None = None  # answered so far, of a question that has several

    def is_wanted(self) -> bool:
        return self.waiting > 0

    def is_stuck(self) -> bool:
        late = self.ended_at is not None and time.monotonic() - self.ended_at > STUCK_AFTER
        return late and not self.is_wanted() and self.future.running()


def note_progress(clauses: int) -> None:
    """Record how many clauses of this thread's question are answered; the error of a timeout says so."""
    job = getattr(_current, "job", None)
    if job is not None:
        job.clauses = clauses


class WorkerPool:
    """Threads that compute answers, for at most ``max_questions`` different questions at a time.

    Equal questions that arrive at the same time are computed once. A request waits ``seconds`` for its answer. A
    question whose clients have all disconnected is dropped, or cancelled at its next step. Answers are stored in
    ``cache``, if there is one.
    """

    def __init__(self, threads: int, max_questions: int, seconds: float, cache: AnswerCache | None = None) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="countless-serve")
        self._max_questions = max_questions
        self._seconds = seconds
        self._cache = cache
        self._jobs: dict[str, _Job] = {}

    @property
    def busy(self) -> bool:
        """Whether a thread is at work."""
        return any(job.future.running() for job in list(self._jobs.values()))

    @property
    def stuck(self) -> int:
        """How many threads work on a cancelled question and do not stop."""
        return sum(job.is_stuck() for job in list(self._jobs.values()))

    @property
    def questions(self) -> int:
        """How many different questions are worked on or wait."""
        return len(self._jobs)

    @property
    def all_stuck(self) -> bool:
        """Whether no thread is left that could answer."""
        return self.stuck >= self.threads

    async def answer(self, key: str, compute: Compute, disconnect: Disconnect | None = None) -> tuple[bytes, bool]:
        """The result of ``compute``, and whether it came from the cache, where ``key`` identifies it.

        When ``disconnect`` is done, the client has gone.
        """
        if self._cache is not None and (cached := self._cache.get(key)) is not None:
            return cached, True
        while True:
            with contextlib.suppress(ComputationCancelledError):  # cancelled just before this request joined it
                return await self._await_answer(key, compute, disconnect), False

    async def _await_answer(self, key: str, compute: Compute, disconnect: Disconnect | None) -> bytes:
        job = self._jobs.get(key)
        if job is None:
            job = self._start(key, compute)
        else:
            job.waiting += 1
        future = asyncio.wrap_future(job.future)
        future.add_done_callback(_consume_error)
        try:
            ends: list[asyncio.Future[Any]] = [future] if disconnect is None else [future, disconnect]
            done, _ = await asyncio.wait(ends, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise too_long(self._seconds, job.clauses, started=job.future.running())
            if future not in done:
                raise RefusalError(499, "GoneError", "the client has disconnected")
            return future.result()
        finally:
            job.waiting -= 1
            job.ended_at = time.monotonic()
            if not job.waiting and job.future.cancel():
                self._jobs.pop(key, None)

    def close(self) -> None:
        """Start no more questions."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, key: str, compute: Compute) -> _Job:
        if len(self._jobs) >= self._max_questions:
            raise RefusalError(
                429, "TooManyRequestsError", "too many requests are waiting: try again later", retry_after=1
            )
        loop = asyncio.get_running_loop()
        job = self._jobs[key] = _Job(waiting=1)
        job.future = self._pool.submit(self._compute, key, compute, job)
        job.future.add_done_callback(lambda future: _on(loop, self._forget, key, job))
        return job

    def _compute(self, key: str, compute: Compute, job: _Job) -> bytes:
        _current.job = job
        try:
            with cancellable(job.is_wanted):
                answer = compute()
        except ComputationCancelledError:
            self._jobs.pop(key, None)  # the next request starts a new computation
            raise
        finally:
            _current.job = None  # its error would keep the model alive
        if self._cache is not None:
            self._cache.put(key, answer)
        return answer

    def _forget(self, key: str, job: _Job) -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]


def _consume_error(future: asyncio.Future[bytes]) -> None:
    """Retrieve an error that nobody waits for, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[str, _Job], None], key: str, job: _Job) -> None:
    """Call in the loop's thread, unless the service has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, key, job)
