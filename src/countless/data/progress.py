"""Progress of a scan over a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

POLL_SECONDS = 0.25
LEAST_SECONDS, LEAST_DONE = 1.0, 0.01  # time and fraction of a pass after which its speed is reported


@dataclass(frozen=True)
class ScanProgress:
    """The progress of a pass over the rows.

    ``rows_per_second`` is None before the rows of the table are counted. Both that and ``seconds_left`` are None at the
    start of a pass.
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
    """Times a pass over ``rows`` rows and reports its progress; ``begun`` is the fraction that was done before."""

    def __init__(
        self,
        report: Callable[[ScanProgress], None],
        rows: int | None = None,
        begun: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._rows, self._begun, self._clock = report, rows, begun, clock
        self._started = clock()

    def at(self, fraction: float) -> None:
        """Report that this fraction of the pass is done."""
        fraction = min(1.0, fraction)
        seconds = self._clock() - self._started
        done = fraction - self._begun
        if seconds < LEAST_SECONDS or done < LEAST_DONE:  # too early to estimate a speed
            self._report(ScanProgress(fraction, None, None))
            return
        speed = None if self._rows is None else done * self._rows / seconds
        self._report(ScanProgress(fraction, speed, seconds * (1.0 - fraction) / done))


class Watch:
    """During its block, polls ``progress()``, a percentage, and reports it to a meter; a negative one is unknown."""

    def __init__(self, progress: Callable[[], float], meter: Meter) -> None:
        self._progress, self._meter = progress, meter
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            percentage = self._progress()
            if percentage > 0:
                self._meter.at(percentage / 100)
