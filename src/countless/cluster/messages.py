"""Messages between the workers of a training run and the driver process: small files in a shared folder."""

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

    def tell_progress(self, progress: Progress) -> None:
        """Workers: where training stands."""
        self._write("progress.json", asdict(progress))

    def progress(self) -> Progress | None:
        """Where training stands, if that was reported."""
        told = self._read("progress.json")
        return None if told is None else Progress(**told)

    def ask_to_stop(self) -> None:
        """End the run after the current step."""
        (self.folder / "stop").touch()

    def asked_to_stop(self) -> bool:
        """Workers: whether to end."""
        return (self.folder / "stop").exists()

    def tell_error(self, error: CountlessError) -> None:
        """Workers: there is no result, and to try again would not help."""
        self._write("error.json", {"message": str(error)})

    def tell_result(self, trained: Trained) -> None:
        """Workers: what was learned."""
        facts = {"report": trained.report, "interrupted": trained.interrupted}
        write_whole(
            self.folder / "result",
            lambda path: save_file(trained.arrays, path, metadata={REPORT: json.dumps(facts)}),
            TrainingError,
        )

    def result(self) -> Trained:
        """What was learned, or the error that was reported."""
        error = self._read("error.json")
        if error is not None:
            raise TrainingError(error["message"])
        try:
            with safe_open(self.folder / "result", framework="numpy") as file:
                facts = json.loads(file.metadata()[REPORT])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except OSError:
            raise ClusterError(f"training ended without a result in {self.folder}: fit again with --resume") from None
        return Trained(arrays, facts["report"], facts["interrupted"])

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_whole(self.folder / name, lambda path: Path(path).write_text(json.dumps(content), encoding="utf-8"))

    def _read(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
            return found
        return None
