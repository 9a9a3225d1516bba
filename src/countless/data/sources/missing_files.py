"""The error for a table's file that is not there: a file that may be meant, or how to name a table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from countless.errors import SourceError

ALIKE = 0.7  # of two names, from 0 to 1: similar enough to be suggested


def missing_file(path: str | Path, endings: Iterable[str], besides: str = "") -> SourceError:
    """There is no file at ``path``; its folder is searched for a similar name with one of the ``endings``."""
    wanted = Path(path)
    said = f"no such file: {path}{besides}"
    try:
        names = sorted(each.name for each in wanted.parent.iterdir() if each.name.lower().endswith(tuple(endings)))
    except OSError:
        return SourceError(f"{said}; the folder {wanted.parent} does not exist, or you may not read it")
    meant = similar_name(wanted.name, names)
    if meant is not None:
        return SourceError(f"{said}; did you mean {wanted.parent / meant}?")
    ways = "a glob in quotes such as 'logs/*.csv', or a table of a database such as shop.duckdb::orders"
    return SourceError(f"{said}; give the path of a file, {ways}")


def similar_name(wanted: str, names: Iterable[str]) -> str | None:
    """The name that ``wanted`` may mean, whatever its ending is.

    >>> similar_name("Orders", ["border.csv", "orders.csv.gz"]), similar_name("oders.csv", ["orders.csv", "z.csv"])
    ('orders.csv.gz', 'orders.csv')
    >>> similar_name("x.csv", ["orders.csv"])
    """
    stems: dict[str, list[str]] = {}
    for name in names:
        stems.setdefault(_stem(name), []).append(name)
    close = difflib.get_close_matches(_stem(wanted), stems, 1, ALIKE)
    return difflib.get_close_matches(wanted, stems[close[0]], 1, 0.0)[0] if close else None


def _stem(name: str) -> str:
    return name.partition(".")[0].casefold()
