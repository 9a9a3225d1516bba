"""Messages between the workers of a training run and the driver process, as small files in a shared folder."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.numpy import save_file

from countless.data.atomic_files import write_whole
from countless.errors import ClusterError, CountlessError, TrainingError
from countless.train.loop import Progress, Trained

REPORT = "countless_report"


class RunFolder:
    """The folder of one training run. Every file is written whole, so a reader never sees half of one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_progress(self, progress: Progress) -> None:
        """Called by workers: report the state of training."""
        self._write("progress.json", asdict(progress))

    def progress(self) -> Progress | None:
        """The last reported state of training; None if there is no report yet."""
        fields = self._read("progress.json")
        return None if fields is None else Progress(**fields)

    def request_stop(self) -> None:
        """Request the end of the run after the current step."""
        (self.folder / "stop").touch()

    def stop_requested(self) -> bool:
        """Called by workers: whether to stop."""
        return (self.folder / "stop").exists()

    def write_error(self, error: CountlessError) -> None:
        """Called by workers: report an error that would occur again."""
        self._write("error.json", {"message": str(error)})

    def write_result(self, trained: Trained) -> None:
        """Called by workers: write the result."""
        metadata = {"report": trained.report, "interrupted": trained.interrupted}
        write_whole(
            self.folder / "result",
            lambda path: save_file(trained.arrays, path, metadata={REPORT: json.dumps(metadata)}),
            TrainingError,
        )

    def result(self) -> Trained:
        """The result of training. Raises the reported error, if there is one."""
        error = self._read("error.json")
        if error is not None:
            raise TrainingError(error["message"])
        try:
            with safe_open(self.folder / "result", framework="numpy") as file:
                metadata = json.loads(file.metadata()[REPORT])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except OSError:
            raise ClusterError(f"training ended without a result in {self.folder}: fit again with --resume") from None
        return Trained(arrays, metadata["report"], metadata["interrupted"])

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_whole(self.folder / name, lambda path: Path(path).write_text(json.dumps(content), encoding="utf-8"))

    def _read(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            content: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
            return content
        return None
