"""A thread-safe memo: each result is computed once, even if several threads request it at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class _Slot:
    __slots__ = ("is_filled", "lock", "value")

    def __init__(self) -> None:
        self.lock, self.is_filled = threading.Lock(), False
        self.value: Any = None


class Memo:
    """Results by key: all of them, or the ``most`` that were used last.

    >>> memo = Memo(most=1)
    >>> memo.once("a", lambda: 1), memo.once("a", lambda: 2), memo.once("b", lambda: 3), memo.once("a", lambda: 4)
    (1, 1, 3, 4)
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._quick: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._slots)

    def once(self, key: Hashable, make: Callable[[], A]) -> A:
        """The stored result for ``key``, or that of ``make``. If ``make`` raises, nothing is stored."""
        value: A
        if self._most is None and (slot := self._slots.get(key)) is not None and slot.is_filled:
            value = slot.value
            return value  # without a limit no slot is dropped, so no lock is needed
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            elif self._most is not None:
                self._slots.move_to_end(key)
            while self._most is not None and len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.is_filled:
                try:
                    slot.value = make()
                except BaseException:
                    self._drop(key, slot)
                    raise
                slot.is_filled = True
            value = slot.value
            return value

    def quick(self, key: Hashable, make: Callable[[A], B], argument: A) -> B:
        """What ``make(argument)`` returned for ``key``, for what takes less time than a lock is worth.

        Two threads may both compute it, and get the one that was first stored.
        """
        value: B | None = self._quick.get(key)
        return self._quick.setdefault(key, make(argument)) if value is None else value

    def _drop(self, key: Hashable, slot: _Slot) -> None:
        with self._lock:
            if self._slots.get(key) is slot:
                del self._slots[key]
