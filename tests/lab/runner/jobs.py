"""Jobs for the tests of sweeps. Only the standard library is imported here, so that their processes start fast."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

Say = Callable[[str], None]


def until(there: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something, but not forever."""
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            raise TimeoutError("it never came")
        time.sleep(0.01)


@dataclass(frozen=True)
class Count:
    """Leaves a mark whenever it is run."""

    one_thread: ClassVar[bool] = False

    name: str
    needs: tuple[str, ...] = ()
    value: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def mark(self, folder: Path) -> None:
        with open(folder / "ran.txt", "a") as file:
            file.write(f"{self.name}\n")

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        self.mark(folder)
        progress(f"counting {self.name}")
        sys.stdout.write("noise")
        return {"value": self.value}


@dataclass(frozen=True)
class Breaks(Count):
    """Fails unless there is a file that mends it."""

    how: str = "exception"

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        if (folder / "mended").exists():
            return super().run(folder, progress)
        if self.how == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "exit":
            sys.stderr.write("last words\n")
            sys.stderr.flush()
            os._exit(3)
        if self.how == "ours":
            from countless.errors import QueryError

            raise QueryError("no such thing: look elsewhere", "a = 1", (0, 1))
        if self.how == "unfit":
            return {"value": object()}
        raise ValueError("broken\nin two lines")


@dataclass(frozen=True)
class Meets(Count):
    """Ends only when all of a party are there at the same time."""

    party: tuple[str, ...] = ()

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        (folder / f"{self.name}.here").touch()
        until(lambda: all((folder / f"{name}.here").exists() for name in self.party))
        return {
            "threads": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            "loaded": "numpy" in sys.modules,
        }


@dataclass(frozen=True)
class Timed(Meets):
    """Has one thread."""

    one_thread: ClassVar[bool] = True


@dataclass(frozen=True)
class Leaves(Count):
    """Leaves a file."""

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        return (folder / f"{self.name}.left",)

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        (folder / f"{self.name}.left").touch()
        return super().run(folder, progress)


@dataclass(frozen=True)
class Waits(Count):
    """Waits for a file, with a process of its own at its side."""

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        if not (folder / "go").exists():
            with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as side:
                try:
                    (folder / f"{self.name}.pids").write_text(f"{os.getpid()} {side.pid}")
                    side.wait()
                finally:
                    side.kill()
        return super().run(folder, progress)


@dataclass(frozen=True)
class Stubborn(Count):
    """Does not end when it is asked to."""

    def run(self, folder: Path, progress: Say) -> dict[str, Any]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        progress(str(os.getpid()))
        time.sleep(60)
        return {}


ENVIRONMENT = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "COUNTLESS_THREADS")
