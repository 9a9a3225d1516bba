"""Fingerprints of tables: detect that a table changed, without reading it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from countless.data.datasets import EMBEDDED, installed_data_set
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import files_of
from countless.data.sources.location import locate
from countless.errors import SourceError


def table_digest(source: Any, table: str | None = None, query: str | None = None) -> str | None:
    """A digest of the names, sizes and times of a table's files, and of the options with which they are read.

    Two tables with the same digest are the same. The reverse does not hold: a copy of a file has another digest. None
    if ``source`` is no file, such as a frame or a table of PostgreSQL.
    """
    try:
        properties = _properties(source, table, query)
    except (OSError, SourceError):  # when the table is read, an error will say what is wrong
        return None
    return None if properties is None else digest_of(repr(properties))


def digest_of(text: str) -> str:
    """A short digest, from which ``text`` cannot be recovered."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _properties(source: Any, table: str | None, query: str | None) -> list[Any] | None:
    """What the digest is computed from."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = os.fspath(source)
    location = locate(path, table, query)
    if location is not None:
        if location.is_postgres or not location.database:
            return None
        wal = Path(f"{location.database}.wal")  # new rows of a database are written there first
        files = [location.database, *([str(wal)] if wal.exists() else [])]
        return [*map(_file_properties, files), location.table, location.query]
    if not Path(path).is_file():
        if path in EMBEDDED:
            path = str(EMBEDDED[path]())
        elif (data_set := installed_data_set(path)) is not None:
            path = str(data_set.locate())
    files_properties = [_file_properties(file) for file in files_of(path)]
    if not files_properties:
        return None
    return [*files_properties, dict(source.options)] if isinstance(source, CsvFile) else [*files_properties]


def _file_properties(file: str) -> tuple[str, int, int]:
    """The name, size and time of a file."""
    path = Path(file).resolve()
    stat = path.stat()
    return str(path), stat.st_size, stat.st_mtime_ns
