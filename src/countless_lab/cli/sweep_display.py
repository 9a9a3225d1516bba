"""The display of a sweep on a terminal: progress, running jobs, failures and the time left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from countless.cli.terminal import display as show
from countless.cli.terminal.display import duration, plural
from countless_lab.runner.process import LocalProcesses
from countless_lab.runner.sweep import Job, SweepListener, SweepOutcome, sweep

if TYPE_CHECKING:
    from countless_lab.runner.cluster import ClusterTasks

BAR = 30  # characters
FAILURES_SHOWN = 5


def run_sweep(
    jobs: Sequence[Job],
    out: Path,
    workers: int | None = None,
    threads: int | None = None,
    ray: str | None = None,
    alone: bool = False,
) -> SweepOutcome:
    """Run the jobs without a result in ``out``, on this machine or on a Ray cluster, and show their progress.

    With ``alone``, one job runs at a time, so that its times are those that a user would see.
    """
    console = show.progress()
    try:
        with _backend(ray, alone, out, workers, threads) as backend, SweepDisplay(console) as watch:
            return sweep(jobs, out, workers, watch, threads, backend)
    except KeyboardInterrupt:
        console.print(
            f"stopped: what is finished stays in {out}, and the same command goes on from there", soft_wrap=True
        )
        raise


def _backend(
    ray: str | None, alone: bool, out: Path, workers: int | None, threads: int | None
) -> AbstractContextManager[ClusterTasks | LocalProcesses | None]:
    """The back end that runs the jobs: None if they share the cores of this machine."""
    if ray is None:
        return nullcontext(LocalProcesses(1, None) if alone else None)
    from countless_lab.runner.cluster import ClusterTasks

    return ClusterTasks(ray, out, workers, threads or 1)


def say_failures(outcome: SweepOutcome) -> int:
    """Print the failures; return the exit code."""
    if not outcome.failed:
        return 0
    console = show.progress()
    console.print(f"{show.plural(len(outcome.failed), 'cell')} failed; the same command tries again:")
    for name, message in list(outcome.failed.items())[:FAILURES_SHOWN]:
        console.print(f"  {name}: {message}", soft_wrap=True)
    more = len(outcome.failed) - FAILURES_SHOWN
    if more > 0:
        console.print(f"  and {more:,} more, each with its reason in cells/*.error.txt")
    if outcome.waiting:
        console.print(f"{show.plural(len(outcome.waiting), 'cell')} that need them did not run")
    return 1


class SweepDisplay(SweepListener):
    """Shows a sweep on ``console``: live on a terminal, a line for every cell that ends elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.pace = Pace()
        self._done = self._failed = self._dropped = self._jobs = 0
        self._running: dict[str, tuple[float, str]] = {}  # when each began, and its last line
        self._live: Live | None = None

    def __enter__(self) -> SweepDisplay:
        if self.console.is_terminal:
            self._live = Live(self, console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def planned(self, done: int, jobs: int) -> None:
        self._done, self._jobs = done, jobs
        self.pace.cells_left = jobs - done
        if done:
            self.console.print(f"{done:,} of {plural(jobs, 'cell')} done by an earlier run")

    def started(self, name: str) -> None:
        self._running[name] = time.monotonic(), ""
        self.pace.at_once = max(self.pace.at_once, len(self._running))

    def said(self, name: str, line: str) -> None:
        if name in self._running:
            self._running[name] = self._running[name][0], " ".join(line.split())

    def finished(self, name: str, seconds: float) -> None:
        self._running.pop(name, None)
        self._done += 1
        self.pace.finished(seconds)
        if self._live is None:
            self.console.print(f"{self._done}/{self._jobs}  {name}: {duration(seconds)}", soft_wrap=True)

    def failed(self, name: str, message: str) -> None:
        self._running.pop(name, None)
        self._failed += 1
        self.pace.cells_left -= 1
        self.console.print(f"{name} failed: {message}", style="red", soft_wrap=True)

    def dropped(self, names: tuple[str, ...], need: str) -> None:
        self._dropped += len(names)
        self.pace.cells_left -= len(names)
        self.console.print(f"{plural(len(names), 'cell')} not run: {need} failed", style="yellow", soft_wrap=True)

    def __rich__(self) -> RenderableType:
        head = Table.grid(padding=(0, 2))
        head.add_row(ProgressBar(total=max(1, self._jobs), completed=self._done, width=BAR), self._text())
        cells = Table.grid(padding=(0, 2))
        cells.add_column(no_wrap=True)
        cells.add_column(justify="right", no_wrap=True)
        cells.add_column(no_wrap=True, overflow="ellipsis")
        for name, (began, line) in tuple(self._running.items()):  # a copy: this is drawn by another thread
            cells.add_row(Text(name), duration(time.monotonic() - began), Text(line))
        return Group(head, cells)

    def _text(self) -> Text:
        text = Text(f"{self._done:,} of {plural(self._jobs, 'cell')}")
        if self._failed:
            text.append(f"  {self._failed} failed", style="red")
        if self._dropped:
            text.append(f"  {self._dropped} not run", style="yellow")
        now = time.monotonic()
        seconds_left = self.pace.seconds_left([now - began for began, _ in tuple(self._running.values())])
        return text if seconds_left is None else text.append(f"  about {duration(seconds_left)} left")


class Pace:
    """How long a sweep may still take, when some of its cells are long and some are short.

    Short cells finish first, so the mean of the finished ones is too small. Adding the time that running cells have
    taken gives the maximum-likelihood mean if durations are exponential.

    >>> pace = Pace(cells_left=10, at_once=2)
    >>> pace.finished(10.0)
    >>> pace.seconds_left([10.0, 0.0]) is None  # too early to tell
    True
    >>> pace.finished(20.0)
    >>> pace.seconds_left([10.0, 0.0])
    80.0
    """

    def __init__(self, cells_left: int = 0, at_once: int = 1) -> None:
        self.cells_left = cells_left  # that have not ended
        self.at_once = at_once
        self._cells = 0
        self._seconds = 0.0

    def finished(self, seconds: float) -> None:
        """A cell took ``seconds``."""
        self.cells_left -= 1
        self._cells += 1
        self._seconds += seconds

    def seconds_left(self, running: list[float]) -> float | None:
        """An estimate, once a cell per process has finished. ``running`` is what running cells have taken so far."""
        if self._cells < self.at_once:
            return None
        if self.cells_left <= 0:
            return 0.0
        pace = (self._seconds + sum(running)) / self._cells
        return pace * max(self.cells_left / self.at_once, 1.0)  # the last cell is a whole one
