"""Cooperative cancellation: a long computation stops at its next check once the result is no longer wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

_thread_state = threading.local()


class ComputationCancelledError(Exception):
    """The caller no longer wants the result."""


@contextmanager
def cancellable(is_wanted: Callable[[], bool] | None) -> Iterator[None]:
    """Inside this block, :func:`check_cancelled` raises once ``is_wanted()`` is false.

    >>> with cancellable(lambda: False):
    ...     check_cancelled()
    Traceback (most recent call last):
    countless.cancellation.ComputationCancelledError
    """
    outer = getattr(_thread_state, "is_wanted", None)
    _thread_state.is_wanted = is_wanted
    try:
        yield
    finally:
        _thread_state.is_wanted = outer


def propagate(function: Callable[[A], B]) -> Callable[[A], B]:
    """Wrap ``function`` so that the thread that runs it obeys this thread's cancellation."""
    is_wanted = getattr(_thread_state, "is_wanted", None)

    def wrapped(argument: A) -> B:
        with cancellable(is_wanted):
            return function(argument)

    return wrapped


@contextmanager
def interrupting(stop: Callable[[], None], every: float = 0.05) -> Iterator[None]:
    """Inside this block, call ``stop`` from another thread, again and again, once the result is no longer wanted."""
    is_wanted = getattr(_thread_state, "is_wanted", None)
    if is_wanted is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            if not is_wanted():
                stop()

    thread = threading.Thread(target=watch, name="countless-interrupt")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check_cancelled() -> None:
    """Raise :class:`ComputationCancelledError` if the surrounding block was cancelled."""
    is_wanted = getattr(_thread_state, "is_wanted", None)
    if is_wanted is not None and not is_wanted():
        raise ComputationCancelledError
