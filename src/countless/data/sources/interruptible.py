"""A generator that runs in its own thread, so that Ctrl-C works while it waits for I/O."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

AHEAD = 2  # most items that are made but not used yet
# A wait ends after this time, and is repeated. A library such as polars may have set the signal handler so that system
# calls continue after Ctrl-C: an endless wait would not notice it.
POLL_SECONDS = 0.1
JOIN_SECONDS = 5.0  # to wait for a thread that should stop


class _End:
    """The last item, with the error that stopped the generator, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Ahead(Generic[Item]):
    """Items of the generator ``make()``, which runs in a thread, a few items ahead of their use.

    If the consumer stops early, it calls ``cancel``.

    >>> with ahead(lambda: (letter for letter in "abc")) as items:
    ...     list(items)
    ['a', 'b', 'c']
    """

    def __init__(self, make: Callable[[], Generator[Item]], cancel: Callable[[], None]) -> None:
        self._make, self._cancel = make, cancel
        self._items: queue.Queue[Any] = queue.Queue(AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        while True:
            try:
                item = self._items.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def close(self) -> None:
        """Stop the thread, in whatever state it is."""
        self._closed.set()
        if self._thread.is_alive():
            self._cancel()
        self._thread.join(JOIN_SECONDS)

    def _work(self) -> None:
        try:
            with closing(self._make()) as items:
                for item in items:
                    self._put(item)
                    if self._closed.is_set():
                        return
            self._put(_End())
        except BaseException as error:
            self._put(_End(error))

    def _put(self, item: Any) -> None:
        while not self._closed.is_set():
            try:
                self._items.put(item, timeout=POLL_SECONDS)
                return
            except queue.Full:
                continue


@contextmanager
def ahead(make: Callable[[], Generator[Item]], cancel: Callable[[], None] = lambda: None) -> Iterator[Ahead[Item]]:
    """An :class:`Ahead` that is closed at the end of the block."""
    items = Ahead(make, cancel)
    try:
        yield items
    finally:
        items.close()
