"""The processor time of one call, which depends less on other load than wall time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """The result of a call, and the milliseconds of processor time that all threads of this process took for it.

    >>> timed(lambda: 6 * 7)[0]
    42
    """
    started = time.process_time_ns()
    answer = call()
    return answer, (time.process_time_ns() - started) / 1e6
