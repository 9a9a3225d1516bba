"""The folder of a sweep's results: one file each, whole or absent."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from countless.data.atomic_files import json_bytes, make_folder, write_bytes
from countless.errors import CountlessError, DataError
from countless_lab.runner.job import Job


class ResultStore:
    """The results in a folder, and which job made each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """The result of a job."""
        return self.folder / "cells" / f"{name}.json"

    def error_path(self, name: str) -> Path:
        """Why a job failed when it was last tried."""
        return self.folder / "cells" / f"{name}.error.txt"

    def log_path(self, name: str) -> Path:
        """The standard output and error of a job that runs or has failed."""
        return self.folder / "cells" / f"{name}.log"

    def result(self, job: Job) -> dict[str, Any] | None:
        """The result of ``job``; None if it is absent or damaged, or if it is of a job with other fields."""
        maker = _comparable(job.to_json())
        try:
            record = json.loads(self.path(job.name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or _comparable(record.get("job")) != maker:
            return None
        result = record.get("result")
        return result if isinstance(result, dict) else None

    def write(self, job: Job, result: dict[str, Any], seconds: float) -> None:
        """Keep the result of ``job``, in place of an earlier result or error."""
        record = {"job": job.to_json(), "seconds": round(seconds, 3), "result": result}
        write_bytes(self.path(job.name), json_bytes(record))
        self.error_path(job.name).unlink(missing_ok=True)

    def write_error(self, name: str, text: str) -> None:
        """Keep why a job failed."""
        write_bytes(self.error_path(name), f"{text.rstrip()}\n".encode(errors="replace"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the folder, and keep other sweeps out of it."""
        make_folder(self.folder / "cells")
        try:
            file = os.open(self.folder / "sweep.lock", os.O_WRONLY | os.O_CREAT, 0o644)
        except OSError as error:
            raise DataError(f"cannot write in {self.folder}: {error.strerror}; choose another -o") from None
        try:
            self._acquire(file)
            for partial in (self.folder / "cells").glob("*.partial"):  # of a sweep that was killed
                partial.unlink(missing_ok=True)
            yield
        finally:
            os.close(file)

    def _acquire(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CountlessError(
                f"another sweep is at work in {self.folder}: wait until it has ended, or choose another -o"
            ) from None
        except OSError as error:
            raise DataError(f"cannot lock {self.folder}: {error.strerror}; choose a local folder with -o") from None


def _comparable(data: Any) -> str:
    """Data as JSON reads it back, as text, in which NaN equals NaN."""
    return json.dumps(json.loads(json.dumps(data)), sort_keys=True)
