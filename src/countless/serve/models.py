"""The models that are served, and their tables."""

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

MAX_LISTED = 12  # numbers and times with at most so many values are listed one by one, as categories are
_serials = itertools.count()


class NamingError(CountlessError):
    """A model or a table on the command line has a wrong name."""


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
        _ = served.properties_json  # before anyone asks
        return served

    @property
    def line(self) -> dict[str, Any]:
        """The model's entry in the list of models, as plain data."""
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
    def properties_json(self) -> bytes:
        """All properties of the model, as JSON."""
        return to_json(finite(self.properties()))

    def properties(self) -> dict[str, Any]:
        """All properties of the model, as plain data."""
        info = self.estimator.info()
        return {
            "name": self.name,
            "rows": info["rows"],
            "checkable": self.table is not None,
            "version": self.version,
            "columns": _columns(self.estimator.schema),
            "left_out": info["left_out"],
            "training": info["training"],
            "interval": info["interval"],
        }


def load_models(
    files: Iterable[str], tables: Iterable[str] = (), csv: Mapping[str, Any] | None = None
) -> dict[str, Served]:
    """The models of ``files``, each a path or ``name=path``, by name; ``tables`` are ``name=path`` of some of them.

    ``csv`` says how to read those tables that are CSV files, by default as their models were fitted.
    """
    paths: dict[str, Path] = {}
    for argument in files:
        name, path = _named(argument)
        if not name or "/" in name or name != name.strip():
            raise NamingError(f'"{argument}": a model is given as MODEL or NAME=MODEL, with a name without slashes')
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
    if column.distinct > MAX_LISTED or column.grid is not None:
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


def _named(argument: str) -> tuple[str, Path]:
    """The name and the path of a model: the name is that of its file, or the text before an equals sign."""
    name, separator, path = argument.partition("=")
    if separator and path and ("/" not in name or Path(path).exists()) and not Path(argument).exists():
        return name, Path(path)
    return Path(argument).stem, Path(argument)


def _tables(arguments: Iterable[str], models: Mapping[str, Path]) -> dict[str, str]:
    paths = {}
    for argument in arguments:
        name, _, path = ("", "", "") if is_postgres(argument) else argument.partition("=")
        if not path:
            raise NamingError(f"{shown(argument)}: a table is given as NAME=TABLE, with the name of its model")
        if name not in models:
            raise NamingError(f'no model is called "{name}": the models are {", ".join(models)}')
        paths[name] = path
    return paths
