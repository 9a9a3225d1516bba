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

REPORTED = "fit"  # in the report of a model: the record of the fit that made it
UNRECORDED = ("table", "query", *names(ResourceOptions))  # the digest is that of the table; resources change no model
TIME = ("epochs", "budget")
AFTERWARDS = names(StorageOptions)  # what is made beside training: a fit may continue with others


@dataclass(frozen=True)
class Run:
    """The fit of a model with its checkpoints beside ``place``: a digest of its table, and its options by name."""

    place: Path
    table: str | None
    options: Mapping[str, Any]

    @classmethod
    def of(cls, place: Path, source: str, options: FitOptions, text_preset: str) -> Run:
        """The fit of ``source`` with these options."""
        reading, workload = options.reading, options.training.workload
        plain = {"text_preset": text_preset, **plain_options(options)}
        plain = {name: value for name, value in plain.items() if name not in UNRECORDED}
        if workload is not None:
            plain["workload"] = _file_digest(workload)
        source = with_csv_options(source, reading.csv)
        return cls(place, table_digest(source, reading.table, reading.query), plain)

    @property
    def path(self) -> Path:
        """The file that keeps the record."""
        return self.place.with_name(self.place.name + ".run")

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record and for the report of the model."""
        return {"options": dict(self.options)}

    def was_killed(self) -> bool:
        """Whether an earlier fit was killed before its first checkpoint."""
        return self.path.exists() and not self.left

    def require_same_options(self, longer: str) -> None:
        """Refuse to continue from checkpoints of a fit that had other options, if there is a record of it.

        ``longer`` says what to do instead if only the time to train differs, if there is something.
        Codes alone depend on a few options only, and their folder knows which.
        """
        if not checkpoints_left(self.place):
            return
        try:
            facts = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # loading the checkpoint compares what it holds
        if told := self._other_options(facts, AFTERWARDS):
            only_time = longer and not self._other_options(facts, (*AFTERWARDS, *TIME))
            raise TrainingError(
                f"cannot continue from {' and '.join(map(str, self.left))}: {told}; "
                f"give the same options, or fit again without --resume{f'; {longer}' if only_time else ''}"
            )

    def differs_from(self, model: Path) -> str | None:
        """How this fit differs from the one that made ``model``; None if they are the same."""
        try:
            report = read(model).report
        except ModelFileError:
            return f"{model} cannot be read"
        facts = report.get(REPORTED)
        if not isinstance(facts, dict):
            return f"{model} does not say how it was fitted"
        if self.table is None:
            return f"whether the table is still that of {model} cannot be known without reading it"
        if report.get(TABLE) != self.table:
            return f"{model} is of another table, or the table has changed since"
        if report.get("interrupted"):
            return f"{model} was stopped early, and its checkpoint is gone"
        told = self._other_options(facts, TIME)  # a finished model is not fitted anew to train longer
        return f"{model} had other options: {told}" if told else None

    @contextmanager
    def recorded(self, resume: bool) -> Iterator[None]:
        """Keep the record inside this block, and after it as long as the fit can be resumed.

        The record of an earlier fit stays until this one trains, since its checkpoints do.
        """
        if resume or not checkpoints_left(self.place):
            self._write()
        try:
            yield
        finally:
            if not self.left:
                self.path.unlink(missing_ok=True)

    def replace_earlier(self) -> None:
        """Remove the checkpoints of an earlier fit, when this one has begun to train from scratch."""
        for left in checkpoint_files(self.place):
            left.unlink(missing_ok=True)
        self._write()

    @property
    def left(self) -> list[Path]:
        """What an earlier fit left to resume from: checkpoints, and the folder of codes."""
        codes = codes_of(self.place)
        return [*checkpoints_left(self.place), *([codes] if is_codes(codes) else [])]

    def _write(self) -> None:
        if self.place.parent.is_dir():
            write_whole(
                self.path,
                lambda partial: Path(partial).write_text(json.dumps(self.to_json()), encoding="utf-8"),
                ModelFileError,
            )

    def _other_options(self, facts: dict[str, Any], but: tuple[str, ...] = ()) -> str:
        """The options that differ from those of a record, with their values."""
        before = facts.get("options")
        if not isinstance(before, dict):
            return "its options are not known"
        differing = [
            name for name in sorted(self.options) if name not in but and before.get(name) != self.options[name]
        ]
        if "workload" in differing:
            return "it had another --workload"
        return ", ".join(
            f"--{name.replace('_', '-')} was {_told(before.get(name))}, now {_told(self.options[name])}"
            for name in differing
        )


def _told(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _file_digest(path: Path) -> str | None:
    try:
        with open_regular(path) as file:
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except (OSError, DataError):  # reading the workload will report what is wrong
        return None
