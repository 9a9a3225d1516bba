"""Errors for missing files: they suggest a file with a similar name, or say how to name a table or make a model."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from pathlib import Path

from countless.errors import ModelFileError, SourceError

LEAST_SIMILARITY = 0.7  # from 0 to 1: of a name that is suggested


def missing_file(path: str | Path, endings: Iterable[str], besides: str = "") -> SourceError:
    """The error for a missing ``path``; it suggests a similar name in the folder with one of the ``endings``."""
    missing = Path(path)
    message = f"no such file: {path}{besides}"
    try:
        names = sorted(file.name for file in missing.parent.iterdir() if file.name.lower().endswith(tuple(endings)))
    except OSError:
        return SourceError(f"{message}; the folder {missing.parent} does not exist, or you may not read it")
    similar = similar_name(missing.name, names)
    if similar is not None:
        return SourceError(f"{message}; did you mean {missing.parent / similar}?")
    ways = "a glob in quotes such as 'logs/*.csv', or a table of a database such as shop.duckdb::orders"
    return SourceError(f"{message}; give the path of a file, {ways}")


def missing_model(path: Path) -> ModelFileError:
    """The error for a missing model file; it suggests a similar one in the folder, or how to make one."""
    try:
        names = sorted(file.name for file in path.parent.iterdir() if file.name.endswith(".countless"))
    except OSError:
        names = []
    similar = similar_name(path.name, names)
    if similar is not None:
        return ModelFileError(f"no such model file: {path}; did you mean {path.parent / similar}?")
    return ModelFileError(f"no such model file: {path}; make one with countless fit TABLE -o {shlex.quote(str(path))}")


def similar_name(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that is most similar to ``name``, whatever its ending; None if none is similar.

    >>> similar_name("Orders", ["border.csv", "orders.csv.gz"]), similar_name("oders.csv", ["orders.csv", "z.csv"])
    ('orders.csv.gz', 'orders.csv')
    >>> similar_name("x.csv", ["orders.csv"])
    """
    stems: dict[str, list[str]] = {}
    for candidate in names:
        stems.setdefault(_stem(candidate), []).append(candidate)
    close = difflib.get_close_matches(_stem(name), stems, 1, LEAST_SIMILARITY)
    return difflib.get_close_matches(name, stems[close[0]], 1, 0.0)[0] if close else None


def _stem(name: str) -> str:
    return name.partition(".")[0].casefold()
