"""A contest as a person sees it."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress, TaskID

from countless_lab.measurement.contenders import ContestListener, Measured


class ContestDisplay(ContestListener):
    """A bar for the contender at work, and a line for each that is done."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console, self._bar = console, bar
        self._task: TaskID | None = None

    def counting(self, queries: int) -> None:
        self._console.print(f"counting {queries:,} random queries ...")

    def begins(self, name: str, queries: int) -> None:
        self._task = self._bar.add_task(name, total=queries)

    def answered(self) -> None:
        assert self._task is not None
        self._bar.advance(self._task)

    def ends(self, measured: Measured) -> None:
        assert self._task is not None
        self._bar.remove_task(self._task)
        self._console.print(f"{measured.name}: {measured.to_json()['ms_p50']:.2f} ms")
