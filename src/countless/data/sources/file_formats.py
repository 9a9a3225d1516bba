"""File formats: the DuckDB table function for each file extension."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countless.data.datasets import is_data_set
from countless.data.sources.csv_files import CsvFile, csv_arguments
from countless.data.sources.location import DATABASES, locate
from countless.data.sources.missing_files import missing_file
from countless.data.sources.regular_files import require_regular
from countless.errors import OptionError, SourceError

PLAIN = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".txt": "read_csv",
}
MODEL = ".countless"
COMPRESSED = (".gz", ".zst")  # endings that may follow that of a text format
READERS = PLAIN | {
    ending + compressed: reader
    for ending, reader in PLAIN.items()
    if reader != "read_parquet"
    for compressed in COMPRESSED
}
TABLES = (*READERS, *DATABASES)  # endings of files that hold tables
# One string per line: quotes and commas have no meaning. An empty line is an empty string.
LINES = "header = false, delim = '\x01', quote = '', escape = '', columns = {'line': 'VARCHAR'}, auto_detect = false"


def scan_file(path: str, csv: Mapping[str, Any] | None = None) -> str:
    """DuckDB's table function for the file or files at ``path``; ``csv`` are the options of a CSV file."""
    if not glob.has_magic(path) and not Path(path).exists():
        raise missing_file(path, TABLES)
    if glob.has_magic(path) and not Path(path).exists() and not glob.glob(path, recursive=True):
        raise SourceError(f"no file matches {path}: give a glob such as 'logs/*.csv', in quotes")
    if Path(path).is_dir():
        raise SourceError(f"{path} is a directory: give a file, or a glob such as {path.rstrip('/')}/*.parquet")
    for file in [path] if Path(path).exists() else glob.glob(path, recursive=True):
        if not Path(file).is_dir():  # DuckDB skips directories
            require_regular(file)
    if path.lower().endswith(MODEL):
        raise SourceError(f"{path} is a Countless model, not a table: give the table")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    reader = _reader(suffixes)
    if csv is not None and reader not in (None, "read_csv"):
        raise OptionError(f"{{csv}} is for CSV files, and {path} is not one")
    if reader is None and csv is None:
        known = f"{', '.join(sorted(READERS))}, and of databases {', '.join(DATABASES)}"
        hint = "if it is CSV, say how to read it, as in csv={'delim': ','}"
        raise SourceError(f"{path}: the file ending is unknown; known endings are {known}; {hint}")
    if csv is None and ".txt" in suffixes[-2:] and suffixes[-1] in (".txt", *COMPRESSED):
        return scan_lines(path)
    if Path(path).is_file() and not Path(path).stat().st_size:
        raise SourceError(f"{path} is empty: it has no column names and no rows")
    return f"{reader or 'read_csv'}({quote_path(path)}{csv_arguments(csv or {})})"


def with_default_options(source: Any, options: Mapping[str, Any] | None) -> Any:
    """The source; the path of a CSV file becomes a :class:`CsvFile` with these options.

    >>> with_default_options("orders.csv", {"delim": ";"}), with_default_options("orders.parquet", {"delim": ";"})
    (CsvFile(path='orders.csv', options={'delim': ';'}), 'orders.parquet')
    """
    if not options or not isinstance(source, str | os.PathLike) or isinstance(source, CsvFile):
        return source
    path = os.fspath(source)
    if is_data_set(path) or locate(path) is not None:
        return source
    reader = _reader([suffix.lower() for suffix in Path(path).suffixes])
    return CsvFile(path, options) if reader in (None, "read_csv") else source


def files_of(path: str) -> tuple[str, ...]:
    """The full paths of the files that ``path`` names; a pattern names several, in sorted order."""
    files = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    return tuple(str(Path(file).resolve()) for file in files)


def _reader(suffixes: Sequence[str]) -> str | None:
    """DuckDB's table function for files with these endings."""
    return READERS.get("".join(suffixes[-2:])) or READERS.get("".join(suffixes[-1:]))


def scan_lines(path: str) -> str:
    """A table of one column, ``line``: a string per line of the file or files at ``path``."""
    return f"(SELECT coalesce(line, '') AS line FROM read_csv({quote_path(path)}, {LINES}, null_padding = true))"


def quote_path(path: str) -> str:
    """``path`` as an SQL string.

    >>> quote_path("O'Hara.csv")
    "'O''Hara.csv'"
    """
    return "'" + path.replace("'", "''") + "'"
