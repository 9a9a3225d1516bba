"""The files of the exhibits: figures as JSON, tables as Markdown, pictures as SVG and PNG."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from countless.data.atomic_files import json_bytes, make_folder, write_bytes
from countless.errors import DataError
from countless_lab.paper.cells import Data
from countless_lab.paper.drawing import pictures
from countless_lab.paper.exhibits import EXHIBITS, Exhibit
from countless_lab.paper.numbers import Record
from countless_lab.paper.scale import PaperScale

CELLS = "cells"  # the sweep's folder


def claim(folder: Path, scale: PaperScale, tables: Sequence[Data]) -> None:
    """Make ``folder`` the place for results of these tables at this scale.

    One that has results at another scale, or of a table with other columns, is left alone.
    """
    make_folder(folder / CELLS)
    path = folder / "scale.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        other, known = str(record["scale"]), {str(name): list(left) for name, left in record["without"].items()}
    except FileNotFoundError:
        other, known = scale.name, {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise DataError(f"{path} is damaged: choose another -o, or delete it if this folder is yours") from None
    if other != scale.name:
        raise DataError(f"{folder} has results at the scale {other}, not {scale.name}: choose another -o")
    for data in tables:
        before = known.setdefault(data.name, list(data.exclude))
        if before != list(data.exclude):
            left = f"without {', '.join(before)}" if before else "with all columns"
            raise DataError(f"{folder} has results of {data.name} {left}: give the same --exclude, or another -o")
    write_bytes(path, json_bytes({"scale": scale.name, "without": known}))


def write(exhibit: Exhibit, tables: Sequence[Record], folder: Path) -> list[Path]:
    """Write an exhibit's files. Data sets that its file has from an earlier run stay in it."""
    together = {one["data"]["name"]: one for one in [*_earlier(folder, exhibit.name), *tables]}
    everything = list(together.values())
    contents = {
        "json": json_bytes({"exhibit": exhibit.name, "title": exhibit.title, "facts": everything}),
        "md": exhibit.markdown(everything).encode(),
        **pictures(lambda figure: exhibit.draw(everything, figure)),
    }
    return [write_bytes(folder / f"{exhibit.name}.{kind}", content) for kind, content in contents.items()]


def read(folders: Iterable[Path]) -> dict[str, list[Record]]:
    """The facts of every exhibit that the folders have. A later folder's come instead of an earlier one's."""
    by_exhibit: dict[str, dict[str, Record]] = {}
    for folder in folders:
        for name in EXHIBITS:
            path = folder / f"{name}.json"
            if path.exists():
                by_exhibit.setdefault(name, {}).update({one["data"]["name"]: one for one in _facts(path, name)})
    return {name: list(by_exhibit[name].values()) for name in EXHIBITS if name in by_exhibit}


def _facts(path: Path, name: str) -> list[Record]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        tables: list[Record] = content["facts"]
        whole = content["exhibit"] == name and all(
            isinstance(table["data"]["name"], str)
            and isinstance(table["settings"]["scale"], str)
            and isinstance(table["missing"], list)
            and isinstance(table["results"], list)
            for table in tables
        )
    except (OSError, ValueError, LookupError, TypeError):
        whole = False
    if not whole:
        raise DataError(f"{path} is damaged: delete it, and write it again with countless paper {name}")
    return tables


def _earlier(folder: Path, name: str) -> list[Record]:
    """What an earlier run wrote, if it can be read."""
    path = folder / f"{name}.json"
    try:
        return _facts(path, name) if path.exists() else []
    except DataError:
        return []
