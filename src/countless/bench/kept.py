"""A folder of results: what was measured stays measured, and nothing in it is ever half-written."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from countless.bench.dimensions import Point
from countless.errors import DataError


class Kept:
    """The results in a folder: a file for every point, and beside them what is made of all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / "points").mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder / "points").close()
        except OSError as error:
            raise DataError(f"cannot write in {folder}: {error.strerror}; choose another -o") from None

    def find(self, point: Point) -> dict[str, Any] | None:
        """What was measured at ``point``, if it was, with the same settings."""
        try:
            record = json.loads((self.folder / "points" / f"{point.name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("settings") != point.settings:
            return None
        return record

    def keep(self, point: Point, record: dict[str, Any]) -> None:
        """Keep what was measured at ``point``, in place of what was measured with other settings."""
        self.write(f"points/{point.name}.json", to_bytes({**record, "settings": point.settings}))

    def write(self, name: str, content: bytes) -> Path:
        """Write a file of the folder: whole, or not at all."""
        path = self.folder / name
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
            raise DataError(f"cannot write {path}: {error.strerror}; free some space or choose another -o") from None
        return path


def to_bytes(data: Any) -> bytes:
    """Data as the text of a JSON file."""
    return (json.dumps(data, indent=1) + "\n").encode()
