"""Fingerprints of tables: detect that a table changed, without reading it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from countless.data.datasets import EMBEDDED, brought_data_set
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.location import locate
from countless.data.sources.source import files_of
from countless.errors import SourceError


def table_digest(source: Any, table: str | None = None, query: str | None = None) -> str | None:
    """A digest of the names, sizes and times of a table's files, and of what is read of them.

    Two tables with the same digest are the same; the other way round, a file that was copied has another digest. None
    if ``source`` is no file, such as a frame or a table of PostgreSQL.
    """
    try:
        facts = _facts(source, table, query)
    except (OSError, SourceError):  # reading the table will say what is wrong
        return None
    return None if facts is None else digest_of(repr(facts))


def digest_of(text: str) -> str:
    """A short digest, from which ``text`` cannot be found."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _facts(source: Any, table: str | None, query: str | None) -> list[Any] | None:
    """What the digest is of."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = os.fspath(source)
    location = locate(path, table, query)
    if location is not None:
        if location.is_postgres or not location.place:
            return None
        wal = Path(f"{location.place}.wal")  # what is written to a database goes there first
        files = [location.place, *([str(wal)] if wal.exists() else [])]
        return [*map(_stated, files), location.table, location.query]
    if not Path(path).is_file():
        if path in EMBEDDED:
            path = str(EMBEDDED[path]())
        elif (brought := brought_data_set(path)) is not None:
            path = str(brought.locate())
    facts = [_stated(file) for file in files_of(path)]
    return [*facts, dict(source.options)] if facts and isinstance(source, CsvFile) else facts or None


def _stated(file: str) -> tuple[str, int, int]:
    """The name, size and time of a file."""
    path = Path(file).resolve()
    facts = path.stat()
    return str(path), facts.st_size, facts.st_mtime_ns
