"""Processor time of one call: a busy machine blurs it less than the time on the wall."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """What a call returns, and the milliseconds of processor that all threads of this process took for it.

    >>> timed(lambda: 6 * 7)[0]
    42
    """
    started = time.process_time_ns()
    answer = call()
    return answer, (time.process_time_ns() - started) / 1e6
