"""A cache of answers to earlier requests."""

from __future__ import annotations

import threading
from collections import OrderedDict


class AnswerCache:
    """The most recently used answers by question, bounded in number and bytes. Threads may share it.

    >>> cache = AnswerCache(2, 100)
    >>> for name in "abc":
    ...     cache.put(name, name.encode())
    >>> cache.get("a"), cache.get("c"), len(cache)
    (None, b'c', 2)
    """

    def __init__(self, max_answers: int, max_bytes: int) -> None:
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> bytes | None:
        """The answer, if it is still there; it becomes the most recently used."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: str, answer: bytes) -> None:
        """Store an answer, unless it alone is too large, and drop the least recently used ones to make room."""
        size = len(key) + len(answer)
        if size > self._max_bytes:
            return
        with self._lock:
            self._drop(key)
            self._answers[key] = answer
            self.bytes += size
            while len(self._answers) > self._max_answers or self.bytes > self._max_bytes:
                self._drop(next(iter(self._answers)))

    def forget(self, prefix: str) -> None:
        """Drop the answers to all questions whose key begins with ``prefix``."""
        with self._lock:
            for key in [key for key in self._answers if key.startswith(prefix)]:
                self._drop(key)

    def _drop(self, key: str) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.bytes -= len(key) + len(answer)
