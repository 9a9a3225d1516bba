"""A generator that runs in its own thread, so that Ctrl-C works while it waits for I/O."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

AHEAD = 2  # items that wait to be used
# Seconds between looks at what else has happened. A wait without an end would not hear of Ctrl-C where a library, such
# as polars, has set the signal's handler so that system calls continue after it.
TURN = 0.1
LEAVE = 5.0  # seconds to wait for a thread that should stop


class _End:
    """The last item: with the error that ended the work, if one did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Ahead(Generic[Item]):
    """Items of ``make()``, made ahead of their use.

    ``cancel`` is called, from the thread that uses them, when they are no longer wanted before their end.

    >>> with ahead(lambda: (letter for letter in "abc")) as items:
    ...     list(items)
    ['a', 'b', 'c']
    """

    def __init__(self, make: Callable[[], Generator[Item]], cancel: Callable[[], None]) -> None:
        self._make, self._cancel = make, cancel
        self._items: queue.Queue[Any] = queue.Queue(AHEAD)
        self._unwanted = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        while True:
            try:
                item = self._items.get(timeout=TURN)
            except queue.Empty:
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def close(self) -> None:
        """End the work, whatever state it is in."""
        self._unwanted.set()
        if self._thread.is_alive():
            self._cancel()
        self._thread.join(LEAVE)

    def _work(self) -> None:
        try:
            with closing(self._make()) as items:
                for item in items:
                    self._put(item)
                    if self._unwanted.is_set():
                        return
            self._put(_End())
        except BaseException as error:
            self._put(_End(error))

    def _put(self, item: Any) -> None:
        while not self._unwanted.is_set():
            try:
                self._items.put(item, timeout=TURN)
                return
            except queue.Full:
                continue


@contextmanager
def ahead(make: Callable[[], Generator[Item]], cancel: Callable[[], None] = lambda: None) -> Iterator[Ahead[Item]]:
    """An :class:`Ahead` that is closed at the end."""
    items = Ahead(make, cancel)
    try:
        yield items
    finally:
        items.close()
