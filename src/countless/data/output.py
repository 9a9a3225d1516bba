"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from countless.errors import CountlessError, DataError

FORMATS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet", ".pq": "FORMAT parquet"}


def format_of(path: str | os.PathLike[str]) -> str:
    """Options of DuckDB's COPY for a table in a file of this name."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"cannot write {path}: the ending must be {', '.join(FORMATS)}")
    return FORMATS[ending]


def require_writable(path: str | os.PathLike[str]) -> None:
    """Say before any work that a table cannot be written there."""
    format_of(path)
    target = Path(path)
    if target.is_dir():
        raise DataError(f"cannot write {target}: it is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise DataError(f"cannot write {target}: there is no directory {target.parent}; make it first")


def write_whole(
    path: str | os.PathLike[str], write: Callable[[str], None], kind: type[CountlessError] = DataError
) -> None:
    """Let ``write`` make a file beside ``path`` that takes its place when it is done; if that fails, none is left.

    An error of the system's is raised as one of this ``kind``.
    """
    target = Path(path)
    try:
        handle, partial = tempfile.mkstemp(prefix=target.name + ".", suffix=".partial", dir=target.parent)
    except OSError as error:
        raise kind(f"cannot write {target}: {error.strerror}; choose another place") from None
    os.close(handle)
    try:
        write(partial)
        os.chmod(partial, 0o666 & ~umask())
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        if isinstance(error, OSError):
            remedy = "nothing was changed: free some space or choose another place"
            raise kind(f"cannot write {target}: {error.strerror}; {remedy}") from None
        raise


def umask() -> int:
    """The permissions that new files do not have."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
