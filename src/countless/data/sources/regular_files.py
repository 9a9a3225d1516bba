"""Safe reading of input files: regular files only, up to a maximum size.

Opening a pipe without a writer would wait forever, and a device such as /dev/zero has no end.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from pathlib import Path
from typing import IO

from countless.errors import CountlessError, DataError, SourceError

STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
OPEN_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/\d+")  # the path that a shell passes for <(command)
LARGEST_TEXT = 1 << 28  # characters
NOT_REGULAR = "is not a regular file but a {}; give the path of a file"
KINDS = (
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISDIR, "directory"),
)


def open_regular(path: str | os.PathLike[str], kind: type[CountlessError] = DataError) -> IO[bytes]:
    """The file at ``path``, open for reading; an error of this ``kind`` if it is a pipe, a device or a directory."""
    # Without O_NONBLOCK, opening a pipe waits for a writer. For a regular file it changes nothing.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _require(path, os.fstat(handle).st_mode, kind)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise a :class:`SourceError` if ``path`` exists and is not a regular file."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return
    _require(path, mode, SourceError)


def read_text(path: Path) -> str:
    """The text of a file or of standard input; a :class:`DataError` if it is neither, or too long."""
    if str(path) in STDIN:
        return _read_bounded(sys.stdin, path)
    if OPEN_DESCRIPTOR.fullmatch(str(path)):
        with open(path, encoding="utf-8") as file:
            return _read_bounded(file, path)
    with io.TextIOWrapper(open_regular(path), encoding="utf-8") as file:
        return _read_bounded(file, path)


def read_stdin() -> str:
    """The text on standard input."""
    return _read_bounded(sys.stdin, Path("-"))


def _read_bounded(file: IO[str], path: Path) -> str:
    """The text of a file; a DataError if it is too long."""
    text = file.read(LARGEST_TEXT + 1)
    if len(text) > LARGEST_TEXT:
        raise DataError(f"cannot read {path}: it has more than {LARGEST_TEXT:,} characters; split it")
    return text


def _require(path: str | os.PathLike[str], mode: int, kind: type[CountlessError]) -> None:
    """Raise an error of this ``kind`` unless ``mode`` is that of a regular file."""
    if not stat.S_ISREG(mode):
        file_type = next((name for is_type, name in KINDS if is_type(mode)), "special file")
        raise kind(f"cannot read {os.fspath(path)}: it {NOT_REGULAR.format(file_type)}")
