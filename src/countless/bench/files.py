"""Files that are whole or absent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from countless.errors import DataError


def make_folder(folder: Path, inner: str) -> None:
    """Make ``folder`` and its folder ``inner`` if they are not there, and see that they can be written in."""
    try:
        (folder / inner).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder / inner).close()
    except OSError as error:
        raise DataError(f"cannot write in {folder}: {error.strerror}; choose another -o") from None


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file: whole, or not at all."""
    try:
        handle, partial = tempfile.mkstemp(prefix=path.name + ".", suffix=".partial", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(partial, 0o644)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
    except OSError as error:
        remedy = "free some space or choose another -o" if error.errno == errno.ENOSPC else "choose another -o"
        raise DataError(f"cannot write {path}: {error.strerror}; {remedy}") from None
    return path


def to_bytes(data: Any) -> bytes:
    """Data as the text of a JSON file."""
    return (json.dumps(data, indent=1) + "\n").encode()
