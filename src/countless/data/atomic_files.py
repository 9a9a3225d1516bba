"""Atomic file writes: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from countless.errors import CountlessError, DataError

FORMATS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet", ".pq": "FORMAT parquet"}


def format_of(path: str | os.PathLike[str]) -> str:
    """The options of DuckDB's COPY for writing a table to a file of this name."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"cannot write {path}: the ending must be {', '.join(FORMATS)}")
    return FORMATS[ending]


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error, before any work, if a table cannot be written to ``path``."""
    format_of(path)
    target = Path(path)
    if target.is_dir():
        raise DataError(f"cannot write {target}: it is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise DataError(f"cannot write {target}: there is no directory {target.parent}; make it first")


def write_whole(
    path: str | os.PathLike[str], write: Callable[[str], object], kind: type[CountlessError] = DataError
) -> None:
    """Let ``write`` write a file beside ``path``, and then move it there; if that fails, no file is left.

    An error of the operating system, which DuckDB may reword, is raised as one of this ``kind``.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise kind(f"cannot write {target}: it is not a regular file; give the name of a file")
    try:
        handle, partial = tempfile.mkstemp(prefix=target.name + ".", suffix=".partial", dir=target.parent)
    except OSError as error:
        raise kind(f"cannot write {target}: {error.strerror}; choose another place") from None
    try:
        _try_lock(handle)  # marks the file as in use until this process ends
        write(partial)
        os.chmod(partial, 0o666 & ~umask())
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        reason = _reason(error, partial)
        if reason is None:
            raise
        remedy = "nothing was changed: free some space or choose another place"
        raise kind(f"cannot write {target}: {reason}; {remedy}") from None
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> Path:
    """Write ``content`` to a file, completely or not at all; return the path."""
    write_whole(path, lambda partial: Path(partial).write_bytes(content))
    return path


def json_bytes(data: Any) -> bytes:
    """Data as the text of a JSON file."""
    return (json.dumps(data, indent=1) + "\n").encode()


def make_folder(folder: Path) -> None:
    """Make a folder if it does not exist, and check that files can be written in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise DataError(f"cannot write in {folder}: {error.strerror}; choose another -o") from None


def _reason(error: BaseException, partial: str) -> str | None:
    """Why the file at ``partial`` could not be written, in the system's words; None if the error has another cause.

    >>> _reason(ValueError('Could not write file "x.csv.a1b2c3d4.partial": No space left on device'), "d4.partial")
    'No space left on device'
    """
    if isinstance(error, OSError):
        return error.strerror or str(error)
    mark = partial[-16:]  # random letters and the ending, because other parts of the path may be escaped
    message = str(error)
    if mark not in message:
        return None
    return message.rpartition(mark)[2].lstrip('\\": ').partition('"')[0].strip() or "it failed"


def remove_strays(path: str | os.PathLike[str]) -> list[Path]:
    """Remove the unfinished files that killed processes left beside ``path``, and return them; keep those in use.

    This works if ``write`` writes to the file of :func:`write_whole`: a file that replaces it is not locked.
    """
    target, removed = Path(path), []
    stray_name = re.compile(re.escape(target.name) + r"\.[a-z0-9_]{8}\.partial")
    for stray in sorted(target.parent.iterdir()) if target.parent.is_dir() else []:
        if stray_name.fullmatch(stray.name) is None:
            continue
        with contextlib.suppress(OSError), open(stray, "rb") as file:
            if _try_lock(file.fileno()):
                stray.unlink(missing_ok=True)
                removed.append(stray)
    return removed


def _try_lock(handle: int) -> bool:
    """Try to lock an open file until it is closed; return whether that worked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked elsewhere, or a file system without locks: then every file counts as in use
        return False
    return True


def umask() -> int:
    """The permission bits that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
