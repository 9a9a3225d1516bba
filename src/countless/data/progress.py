"""Progress of a scan over a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY = 0.25  # seconds between two looks
LEAST_SECONDS, LEAST_DONE = 1.0, 0.01  # of a pass, before its speed is shown


@dataclass(frozen=True)
class ScanProgress:
    """Where a pass over the rows stands.

    The rows a second are not known before the table's are counted, and the time left not before some of it is done.
    """

    fraction: float
    rows_per_second: float | None
    seconds_left: float | None


class Events:
    """Receives the progress of reading a table. Each method does nothing by default."""

    def stage(self, name: str) -> None:
        """A stage begins.

        Args:
            name: What begins, such as ``reading``.
        """

    def reading(self, reading: ScanProgress) -> None:
        """A pass over the table has progressed.

        Args:
            reading: How far it is.
        """

    def notice(self, message: str) -> None:
        """Something happened that the user should know.

        Args:
            message: One or two sentences.
        """


QUIET = Events()


class Meter:
    """Times a pass over ``rows`` rows, and reports its progress to ``heard``."""

    def __init__(
        self,
        heard: Callable[[ScanProgress], None],
        rows: int | None = None,
        begun: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._heard, self._rows, self._begun, self._clock = heard, rows, begun, clock
        self._started = clock()

    def at(self, fraction: float) -> None:
        """So much of the pass is over; what was done before it began takes no time."""
        fraction = min(1.0, fraction)
        seconds = self._clock() - self._started
        done = fraction - self._begun
        if seconds < LEAST_SECONDS or done < LEAST_DONE:  # so little says nothing
            self._heard(ScanProgress(fraction, None, None))
            return
        speed = None if self._rows is None else done * self._rows / seconds
        self._heard(ScanProgress(fraction, speed, seconds * (1.0 - fraction) / done))


class Watch:
    """Looks at ``progress``, a percentage or something negative, while the body runs, and reports it to a meter."""

    def __init__(self, progress: Callable[[], float], meter: Meter) -> None:
        self._progress, self._meter = progress, meter
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            percentage = self._progress()
            if percentage > 0:
                self._meter.at(percentage / 100)
