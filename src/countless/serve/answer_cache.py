"""A cache of answers to earlier requests."""

from __future__ import annotations

import threading
from collections import OrderedDict


class Kept:
    """Answers by what was asked, the latest ones: at most this many, and this many bytes. Safe to share by threads.

    >>> kept = Kept(2, 100)
    >>> for name in "abc":
    ...     kept.put(name, name.encode())
    >>> kept.get("a"), kept.get("c"), len(kept)
    (None, b'c', 2)
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, asked: str) -> bytes | None:
        """The answer, if it is still there; it is now the latest."""
        with self._lock:
            if asked in self._answers:
                self._answers.move_to_end(asked)
            return self._answers.get(asked)

    def put(self, asked: str, answer: bytes) -> None:
        """Keep an answer, unless it is larger than all may be together, and forget the oldest ones for it."""
        size = len(asked) + len(answer)
        if size > self._most_bytes:
            return
        with self._lock:
            self._drop(asked)
            self._answers[asked] = answer
            self.bytes += size
            while len(self._answers) > self._most or self.bytes > self._most_bytes:
                self._drop(next(iter(self._answers)))

    def forget(self, beginning: str) -> None:
        """Drop the answers to all questions that begin like this."""
        with self._lock:
            for asked in [asked for asked in self._answers if asked.startswith(beginning)]:
                self._drop(asked)

    def _drop(self, asked: str) -> None:
        answer = self._answers.pop(asked, None)
        if answer is not None:
            self.bytes -= len(asked) + len(answer)
