"""The record of an unfinished fit's options, kept beside the model file so that the fit can be resumed.

A fit that continues (``--resume``) must have the options of the one that was stopped, and a model that is finished must
be of the same table. This record shows both, before the table is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless.cli.model_files.files_beside import checkpoint_files, checkpoints_left, codes_of
from countless.cli.parameters.settings import plain_options
from countless.data.atomic_files import write_whole
from countless.data.encoding.code_files import is_codes
from countless.data.sources.csv_files import with_csv_options
from countless.data.sources.fingerprints import table_digest
from countless.data.sources.regular_files import open_regular
from countless.errors import DataError, ModelFileError, TrainingError
from countless.estimator.fitting.fit import TABLE
from countless.options import FitOptions, ResourceOptions, StorageOptions
from countless.settings import names
from countless.store import read

REPORT_FIELD = "fit"  # the field of a model's report that holds the record of its fit
UNRECORDED = ("table", "query", *names(ResourceOptions))  # the table has a digest; resources do not change the model
TIME = ("epochs", "budget")
AFTER_TRAINING = names(StorageOptions)  # a fit may continue with other values of these


@dataclass(frozen=True)
class Run:
    """A fit: the path that its checkpoints are beside, a digest of its table, and its options by name."""

    output: Path
    table: str | None
    options: Mapping[str, Any]

    @classmethod
    def of(cls, output: Path, source: str, options: FitOptions, text_preset: str) -> Run:
        """The fit of ``source`` with these options."""
        reading, workload = options.reading, options.training.workload
        plain = {"text_preset": text_preset, **plain_options(options)}
        plain = {name: value for name, value in plain.items() if name not in UNRECORDED}
        if workload is not None:
            plain["workload"] = _file_digest(workload)
        source = with_csv_options(source, reading.csv)
        return cls(output, table_digest(source, reading.table, reading.query), plain)

    @property
    def path(self) -> Path:
        """The file that keeps the record."""
        return self.output.with_name(self.output.name + ".run")

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record and for the report of the model."""
        return {"options": dict(self.options)}

    def was_killed(self) -> bool:
        """Whether an earlier fit was killed before its first checkpoint."""
        return self.path.exists() and not self.leftovers

    def require_same_options(self, longer: str) -> None:
        """Refuse to continue from checkpoints of a fit that had other options, if there is a record of it.

        ``longer`` says what to do if only the time to train differs. Codes alone depend on a few options, and their
        folder records those.
        """
        if not checkpoints_left(self.output):
            return
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # loading the checkpoint compares what it holds
        if difference := self._other_options(record, AFTER_TRAINING):
            only_time = longer and not self._other_options(record, (*AFTER_TRAINING, *TIME))
            raise TrainingError(
                f"cannot continue from {' and '.join(map(str, self.leftovers))}: {difference}; "
                f"give the same options, or fit again without --resume{f'; {longer}' if only_time else ''}"
            )

    def differs_from(self, model: Path) -> str | None:
        """How this fit differs from the one that made ``model``; None if they are the same."""
        try:
            report = read(model).report
        except ModelFileError:
            return f"{model} cannot be read"
        record = report.get(REPORT_FIELD)
        if not isinstance(record, dict):
            return f"{model} does not say how it was fitted"
        if self.table is None:
            return f"whether the table is still that of {model} cannot be known without reading it"
        if report.get(TABLE) != self.table:
            return f"{model} is of another table, or the table has changed since"
        if report.get("interrupted"):
            return f"{model} was stopped early, and its checkpoint is gone"
        difference = self._other_options(record, TIME)  # a finished model is not fitted anew to train longer
        return f"{model} had other options: {difference}" if difference else None

    @contextmanager
    def recorded(self, resume: bool) -> Iterator[None]:
        """Keep the record inside this block, and after it as long as the fit can be resumed.

        The record of an earlier fit stays until this one trains, since its checkpoints do.
        """
        if resume or not checkpoints_left(self.output):
            self._write()
        try:
            yield
        finally:
            if not self.leftovers:
                self.path.unlink(missing_ok=True)

    def replace_earlier(self) -> None:
        """Remove the checkpoints of an earlier fit, when this one has begun to train from scratch."""
        for path in checkpoint_files(self.output):
            path.unlink(missing_ok=True)
        self._write()

    @property
    def leftovers(self) -> list[Path]:
        """The files of an earlier fit to resume from: checkpoints, and the folder of codes."""
        codes = codes_of(self.output)
        return [*checkpoints_left(self.output), *([codes] if is_codes(codes) else [])]

    def _write(self) -> None:
        if self.output.parent.is_dir():
            write_whole(
                self.path,
                lambda partial: Path(partial).write_text(json.dumps(self.to_json()), encoding="utf-8"),
                ModelFileError,
            )

    def _other_options(self, record: dict[str, Any], ignored: tuple[str, ...] = ()) -> str:
        """The options that differ from those of a record, with their values."""
        before = record.get("options")
        if not isinstance(before, dict):
            return "its options are not known"
        differing = [
            name for name in sorted(self.options) if name not in ignored and before.get(name) != self.options[name]
        ]
        if "workload" in differing:
            return "it had another --workload"
        return ", ".join(
            f"--{name.replace('_', '-')} was {_printed(before.get(name))}, now {_printed(self.options[name])}"
            for name in differing
        )


def _printed(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _file_digest(path: Path) -> str | None:
    try:
        with open_regular(path) as file:
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except (OSError, DataError):  # reading the workload will report what is wrong
        return None
