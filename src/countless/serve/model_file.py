"""The file of a served model: its state on disk, and how it is loaded and checked."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from countless.data.sources.csv_files import CsvFile
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from countless.serve.api import limits
from countless.serve.tables import CheckedTable

DIGEST_BYTES = 8
LOAD_ATTEMPTS = 3  # a file that is replaced while it is read is read again


class FileStamp(NamedTuple):
    """The state of a file: another stamp means that it was written or replaced."""

    inode: int
    size: int
    modified_ns: int


class LoadedModel(NamedTuple):
    """A model read from a file, with the file's stamp and version and the time that loading took."""

    estimator: Estimator
    table: CheckedTable | None
    stamp: FileStamp
    version: str
    seconds: float


@dataclass(frozen=True)
class ModelFile:
    """The path of a model, and the table to count its rows in, if there is one."""

    name: str
    path: Path
    table: str | CsvFile | None = None

    def stamp(self) -> FileStamp | None:
        """The file as it is now, or None if it cannot be reached."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns)

    def version(self) -> str:
        """A digest of the file's bytes: equal on every machine that serves the same file."""
        try:
            with open(self.path, "rb") as file:
                return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).hexdigest()
        except OSError as error:
            raise ModelFileError(f"{self.path}: {error.strerror}") from None

    def load(self) -> LoadedModel:
        """Read the model, open its table, and ask it once.

        Raises:
            CountlessError: The file or the table cannot be read, they do not fit each other, or the model gives no
                number of rows.
        """
        began = time.perf_counter()
        for _ in range(LOAD_ATTEMPTS):
            stamp = self.stamp()
            estimator = self._read()
            version = self.version()
            if stamp is not None and stamp == self.stamp():
                break
        else:
            raise ModelFileError(f"{self.path}: the file changes while it is read; write it beside, and rename it")
        estimator.keep_questions(limits.KEPT_QUESTIONS)
        if not math.isfinite(estimator.estimate("TRUE").rows):
            raise ModelFileError(f"{self.path}: the model gives no number of rows; fit it again")
        table = None if self.table is None else CheckedTable(self.table, estimator.schema)
        return LoadedModel(estimator, table, stamp, version, time.perf_counter() - began)

    def _read(self) -> Estimator:
        try:
            return Estimator.load(self.path)
        except ModelFileError as error:
            if str(self.path) in str(error):
                raise
            raise ModelFileError(f"{self.path}: {error}") from None
