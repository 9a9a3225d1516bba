"""A folder of results: what was measured stays measured, and nothing in it is ever half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from countless.data.output import json_bytes, make_folder, write_bytes
from countless_lab.growth.dimensions import Point


class Kept:
    """The results in a folder: a file for every point, and beside them what is made of all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder / "points")

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
        self.write(f"points/{point.name}.json", json_bytes({**record, "settings": point.settings}))

    def write(self, name: str, content: bytes) -> Path:
        """Write a file of the folder: whole, or not at all."""
        return write_bytes(self.folder / name, content)
