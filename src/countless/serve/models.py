"""The served models, as they were loaded, and their tables."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from countless.cached_property import cached_property
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import TEXT, TIMES, is_number
from countless.data.sources.csv_files import CsvFile
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.location import is_postgres, shown
from countless.errors import CountlessError
from countless.estimator.estimator import Estimator
from countless.serve.model_file import FileStamp, ModelFile
from countless.serve.plain_json import finite, to_json
from countless.serve.tables import CheckedTable

FEW = 12  # values of numbers and times that are listed one by one, as categories are
_serials = itertools.count()


class NamingError(CountlessError):
    """Models or tables are not named as they have to be on the command line."""


@dataclass(frozen=True)
class Served:
    """A model by its name, and its table if rows can be counted in it.

    ``version`` identifies the file, ``serial`` each load in this process.
    """

    name: str
    estimator: Estimator
    table: CheckedTable | None
    file: ModelFile | None = None
    stamp: FileStamp | None = None
    version: str = "unknown"
    load_seconds: float = 0.0
    loaded_at: float = field(default_factory=time.time)
    serial: int = field(default_factory=lambda: next(_serials))

    @classmethod
    def load(cls, file: ModelFile) -> Served:
        """The model of a file, checked and ready to answer."""
        loaded = file.load()
        served = cls(
            file.name, loaded.estimator, loaded.table, file, loaded.stamp, loaded.version, load_seconds=loaded.seconds
        )
        _ = served.facts_json  # before anyone asks
        return served

    @property
    def line(self) -> dict[str, Any]:
        """The model in short, as plain data."""
        schema = self.estimator.schema
        return {
            "name": self.name,
            "rows": schema.rows,
            "columns": len(schema.names),
            "texts": len(schema.texts),
            "checkable": self.table is not None,
            "version": self.version,
        }

    @cached_property
    def facts_json(self) -> bytes:
        """The model in full, as JSON."""
        return to_json(finite(self.facts()))

    def facts(self) -> dict[str, Any]:
        """The model in full, as plain data."""
        held = self.estimator.info()
        return {
            "name": self.name,
            "rows": held["rows"],
            "checkable": self.table is not None,
            "version": self.version,
            "columns": _columns(self.estimator.schema),
            "left_out": held["left_out"],
            "training": held["training"],
            "interval": held["interval"],
        }


def load_models(
    files: Iterable[str], tables: Iterable[str] = (), csv: Mapping[str, Any] | None = None
) -> dict[str, Served]:
    """The models of ``files``, each a path or ``name=path``, by name; ``tables`` are ``name=path`` of some of them.

    ``csv`` says how to read those tables that are CSV files, by default as their models were fitted.
    """
    paths: dict[str, Path] = {}
    for given in files:
        name, path = _named(given)
        if not name or "/" in name or name != name.strip():
            raise NamingError(f'"{given}": a model is given as MODEL or NAME=MODEL, with a name without slashes')
        if name in paths:
            raise NamingError(
                f'two models would be called "{name}", {paths[name]} and {path}: '
                f"give one of them another name, as in {name}2={path}"
            )
        paths[name] = path
    if not paths:
        raise CountlessError("there is no model to serve: name a model file")
    sources = {name: with_default_options(path, csv) for name, path in _tables(tables, paths).items()}
    if csv and not any(isinstance(source, CsvFile) for source in sources.values()):
        raise NamingError("--csv says how to read a CSV file, and no --table is one")
    return {name: Served.load(ModelFile(name, path, sources.get(name))) for name, path in paths.items()}


def kind_of(column: Column | TextColumn) -> str:
    """How a column is shown: its values one by one (category), in bins (number, time), or not at all (text)."""
    if column.is_text or (column.type == TEXT and column.grid is not None):
        return "text"
    if column.distinct > FEW or column.grid is not None:
        if is_number(column.type):
            return "number"
        if column.type in TIMES:
            return "time"
    return "category"


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "kind": kind_of(column),
            "distinct": column.distinct,
            "has_null": column.has_null,
            "binned": not column.is_text and column.grid is not None,
        }
        for column in schema.columns
    ]


def _named(given: str) -> tuple[str, Path]:
    """The name and the path of a model: its own, or what stands before an equals sign."""
    name, separator, path = given.partition("=")
    if separator and path and ("/" not in name or Path(path).exists()) and not Path(given).exists():
        return name, Path(path)
    return Path(given).stem, Path(given)


def _tables(given: Iterable[str], models: Mapping[str, Path]) -> dict[str, str]:
    found = {}
    for item in given:
        name, _, path = ("", "", "") if is_postgres(item) else item.partition("=")
        if not path:
            raise NamingError(f"{shown(item)}: a table is given as NAME=TABLE, with the name of its model")
        if name not in models:
            raise NamingError(f'no model is called "{name}": the models are {", ".join(models)}')
        found[name] = path
    return found
