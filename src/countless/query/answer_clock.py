"""A clock for answers. It stands still while the SQL parser and DuckDB are loaded, once in a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _StoppedClock(threading.local):
    """For how many seconds the clock of a thread has stood still."""

    seconds = 0.0


_stopped = _StoppedClock()


def answer_clock() -> float:
    """Seconds, to be compared with an earlier reading in the same thread."""
    return time.perf_counter() - _stopped.seconds


@contextmanager
def one_time_work() -> Iterator[None]:
    """Within, the clock of this thread stands still.

    >>> started = answer_clock()
    >>> with one_time_work():
    ...     time.sleep(0.2)
    >>> answer_clock() - started < 0.2
    True
    """
    started = answer_clock()
    try:
        yield
    finally:
        _stopped.seconds += answer_clock() - started
