"""Derived columns: what DuckDB computes from one row of a table is a column of the model, as the others are.

The table itself does not have them. They are computed wherever it is opened.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from countless.data.columns.types import quote_identifier
from countless.errors import OptionError

MOST_LISTED = 20


@dataclass(frozen=True)
class Derived:
    """A derived column: its name, the SQL that computes it, and the columns of the table in this SQL."""

    name: str
    sql: str
    columns: tuple[str, ...]


def select_derived(table: str, derived: Iterable[Derived]) -> str:
    """SQL for the rows of ``table`` with derived columns.

    >>> select_derived("t", [Derived("low", "LOWER(city)", ("city",))])
    'SELECT *, LOWER(city) AS "low" FROM t'
    """
    found = (f"{item.sql} AS {quote_identifier(item.name)}" for item in derived)
    return f"SELECT {', '.join(['*', *found])} FROM {table}"


def computable(derived: Sequence[Derived], names: Iterable[str]) -> list[Derived]:
    """The derived columns that a table with columns of these ``names`` lacks, and has everything for."""
    present = {name.casefold() for name in names}
    return [
        item
        for item in derived
        if item.name.casefold() not in present and all(name.casefold() in present for name in item.columns)
    ]


def check_derived(derived: Sequence[Derived], names: Sequence[str]) -> None:
    """Refuse derived columns that do not fit a table with columns of these ``names``."""
    taken = {name.casefold(): name for name in names}
    for item in derived:
        for name in item.columns:
            if name.casefold() not in taken:
                close = difflib.get_close_matches(name.casefold(), [own.casefold() for own in names], 1)
                more = " ..." if len(names) > MOST_LISTED else ""
                listed = f"the columns are {', '.join(names[:MOST_LISTED])}{more}"
                hint = f'did you mean "{taken[close[0]]}"?' if close else listed
                raise OptionError(f'{{derive}} {item.sql} AS {item.name}: unknown column "{name}": {hint}')
    for item in derived:
        if item.name.casefold() in taken:
            raise OptionError(
                f'{{derive}} {item.sql} AS {item.name}: there is a column "{taken[item.name.casefold()]}" already: '
                "give another name after AS"
            )
        taken[item.name.casefold()] = item.name
