"""Long work that is given up when nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

_own = threading.local()


class GivenUpError(Exception):
    """Nobody waits for what this thread was doing."""


@contextmanager
def while_wanted(wanted: Callable[[], bool] | None) -> Iterator[None]:
    """What this thread does within is given up at the next :func:`go_on` when ``wanted`` says no.

    >>> with while_wanted(lambda: False):
    ...     go_on()
    Traceback (most recent call last):
    countless.patience.GivenUpError
    """
    before = getattr(_own, "wanted", None)
    _own.wanted = wanted
    try:
        yield
    finally:
        _own.wanted = before


def carried(call: Callable[[A], B]) -> Callable[[A], B]:
    """``call`` for another thread, which gives it up when this one would."""
    wanted = getattr(_own, "wanted", None)

    def called(given: A) -> B:
        with while_wanted(wanted):
            return call(given)

    return called


@contextmanager
def stopping(stop: Callable[[], None], every: float = 0.05) -> Iterator[None]:
    """Call ``stop``, from another thread, when what this thread does within is no longer wanted, until it ends."""
    wanted = getattr(_own, "wanted", None)
    if wanted is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            if not wanted():
                stop()

    thread = threading.Thread(target=watch, name="countless-stopping")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def go_on() -> None:
    """A step of long work: an error here, if it is no longer wanted."""
    wanted = getattr(_own, "wanted", None)
    if wanted is not None and not wanted():
        raise GivenUpError
