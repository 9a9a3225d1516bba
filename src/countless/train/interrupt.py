"""Graceful interruption by Ctrl-C: finish the current step, keep what was learned, then stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """While entered, the first Ctrl-C sets ``requested``; a second one interrupts at once, as usual.

    Python delivers signals to the main thread only; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None  # the handler to restore; None if ours is not installed

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None
