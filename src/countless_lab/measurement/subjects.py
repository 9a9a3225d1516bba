"""The tables that a user names for an experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countless.data.sources.location import is_postgres, shown
from countless.data.sources.source import Source
from countless.errors import DataError

UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True)
class Subject:
    """A table to experiment on: what results call it, where it is, and the columns to leave out."""

    name: str
    source: str
    exclude: tuple[str, ...] = ()


def subjects(tables: Sequence[str], exclude: Sequence[str]) -> list[Subject]:
    """The tables, each under a name of its own. ``exclude`` names columns of any of them."""
    for table in tables:
        if is_postgres(table):
            raise DataError(f"{shown(table)}: every trial would read it anew; write it to a Parquet file first")
    columns = {table: [name for name, _ in Source.open(table).columns()] for table in tables}
    column_names = {name.casefold() for names in columns.values() for name in names}
    for name in exclude:
        if name.casefold() not in column_names:
            examples = ", ".join(columns[tables[0]])
            raise DataError(f'--exclude names "{name}", which no table has: the first one has {examples}')
    excluded = {name.casefold() for name in exclude}
    by_name: dict[str, Subject] = {}
    for table, names in columns.items():
        name = result_name(table)
        if name in by_name:
            raise DataError(f"two tables are called {name}: rename the file of one")
        by_name[name] = Subject(name, table, tuple(column for column in names if column.casefold() in excluded))
    return list(by_name.values())


def result_name(table: str) -> str:
    """What results call a table.

    >>> result_name("data/people.csv.gz"), result_name("logs/2024 *.csv"), result_name("dmv-full")
    ('people', '2024', 'dmv-full')
    """
    return UNSAFE.sub("_", Path(table).name.split(".")[0]).strip("_") or "table"
