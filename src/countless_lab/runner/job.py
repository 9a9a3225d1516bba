"""Jobs of a sweep: units of work with a name, the jobs that they need, and a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, ClassVar, Protocol

from countless.errors import CountlessError

MAX_NAME = 200  # characters: a file name has at most 255 bytes, endings included

Result = dict[str, Any]  # plain JSON
Say = Callable[[str], None]  # receives messages


class Job(Protocol):
    """A unit of work: a frozen dataclass of a module that pickles, and whose fields determine its result."""

    @property
    def name(self) -> str:
        """Unique, and fit for a file name."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the jobs whose results must be there first."""

    @property
    def one_thread(self) -> bool:
        """Whether linear algebra keeps to one thread, as where single questions are timed."""

    def to_json(self) -> Result:
        """What the result depends on; kept beside the result."""

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        """The files that it writes for the jobs that need it."""

    def run(self, folder: Path, say: Say) -> Result:
        """The result. Runs in a process of its own. ``folder`` is the sweep's; other files may be written there."""


@dataclass(frozen=True)
class ExperimentJob(ABC):
    """A :class:`Job` that needs no other, leaves no file, and whose result depends on its fields."""

    one_thread: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """See :class:`Job`, as for the other methods."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Result:
        return asdict(self)

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def output(self, folder: Path) -> Path:
        """The only file that it leaves, or the first one."""
        return self.outputs(folder)[0]

    def new_output(self, folder: Path) -> Path:
        """The same; its folder is made."""
        path = self.output(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @abstractmethod
    def run(self, folder: Path, say: Say) -> Result:
        """The result."""


def by_name(jobs: Sequence[Job]) -> dict[str, Job]:
    """The jobs by their names, in the order given. An error says why they cannot be a sweep."""
    named = {job.name: job for job in jobs}
    if len(named) < len(jobs):
        twice = next(name for name in named if sum(job.name == name for job in jobs) > 1)
        raise CountlessError(f"two jobs are named {twice}: give each a name of its own")
    for name, job in named.items():
        if not name or name.startswith(".") or len(name) > MAX_NAME or any(letter in name for letter in "/\\\0\n"):
            raise CountlessError(f"{name!r} cannot be the name of a file: rename the job")
        if type(job).__module__ == "__main__":
            raise CountlessError(f"job {name} is defined in a script, where no other process finds it: use a module")
        for need in job.needs:
            if need not in named:
                raise CountlessError(f"job {name} needs {need}, which is not in the sweep: add it")
    try:
        TopologicalSorter({name: job.needs for name, job in named.items()}).prepare()
    except CycleError as error:
        raise CountlessError(f"jobs need each other in a circle: {' -> '.join(error.args[1])}") from None
    return named


def dependents(name: str, jobs: Sequence[Job]) -> tuple[str, ...]:
    """The jobs that need ``name``, directly or through others, in the order given."""
    lost = {name}
    while more := {job.name for job in jobs if job.name not in lost and lost.intersection(job.needs)}:
        lost |= more
    return tuple(job.name for job in jobs if job.name in lost - {name})
