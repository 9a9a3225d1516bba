"""Graceful interruption by Ctrl-C: finish the current step, keep what was learned, then stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """While entered, the first Ctrl-C sets ``requested``.

    A second one raises KeyboardInterrupt when the block ends, so that the block can save its work; a third one at once.

    Python delivers signals to the main thread only; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.requested = self.repeated = False
        self._previous: Any = None  # the handler to restore; None if ours is not installed

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._restore()
        if self.repeated and error_type is None:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            self.repeated = True
            self._restore()
        self.requested = True

    def _restore(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None
