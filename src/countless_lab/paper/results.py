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
    """Record in ``folder`` that it has results of these tables at this scale.

    Raises an error if it has results at another scale, or of a table with other columns.
    """
    make_folder(folder / CELLS)
    path = folder / "scale.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        recorded_scale, excluded = (
            str(record["scale"]),
            {str(name): list(columns) for name, columns in record["without"].items()},
        )
    except FileNotFoundError:
        recorded_scale, excluded = scale.name, {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise DataError(f"{path} is damaged: choose another -o, or delete it if this folder is yours") from None
    if recorded_scale != scale.name:
        raise DataError(f"{folder} has results at the scale {recorded_scale}, not {scale.name}: choose another -o")
    for data in tables:
        before = excluded.setdefault(data.name, list(data.exclude))
        if before != list(data.exclude):
            columns = f"without {', '.join(before)}" if before else "with all columns"
            raise DataError(f"{folder} has results of {data.name} {columns}: give the same --exclude, or another -o")
    write_bytes(path, json_bytes({"scale": scale.name, "without": excluded}))


def write(exhibit: Exhibit, tables: Sequence[Record], folder: Path) -> list[Path]:
    """Write an exhibit's files. Data sets that its file has from an earlier run stay in it."""
    by_name = {table["data"]["name"]: table for table in [*_earlier(folder, exhibit.name), *tables]}
    all_tables = list(by_name.values())
    contents = {
        "json": json_bytes({"exhibit": exhibit.name, "title": exhibit.title, "facts": all_tables}),
        "md": exhibit.markdown(all_tables).encode(),
        **pictures(lambda figure: exhibit.draw(all_tables, figure)),
    }
    return [write_bytes(folder / f"{exhibit.name}.{kind}", content) for kind, content in contents.items()]


def read(folders: Iterable[Path]) -> dict[str, list[Record]]:
    """The facts of every exhibit in the folders; those of a later folder replace those of an earlier one."""
    by_exhibit: dict[str, dict[str, Record]] = {}
    for folder in folders:
        for name in EXHIBITS:
            path = folder / f"{name}.json"
            if path.exists():
                by_exhibit.setdefault(name, {}).update(
                    {table["data"]["name"]: table for table in _read_facts(path, name)}
                )
    return {name: list(by_exhibit[name].values()) for name in EXHIBITS if name in by_exhibit}


def _read_facts(path: Path, name: str) -> list[Record]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        tables: list[Record] = content["facts"]
        is_whole = content["exhibit"] == name and all(
            isinstance(table["data"]["name"], str)
            and isinstance(table["settings"]["scale"], str)
            and isinstance(table["missing"], list)
            and isinstance(table["results"], list)
            for table in tables
        )
    except (OSError, ValueError, LookupError, TypeError):
        is_whole = False
    if not is_whole:
        raise DataError(f"{path} is damaged: delete it, and write it again with countless paper {name}")
    return tables


def _earlier(folder: Path, name: str) -> list[Record]:
    """The facts that an earlier run wrote, if they can be read."""
    path = folder / f"{name}.json"
    try:
        return _read_facts(path, name) if path.exists() else []
    except DataError:
        return []
