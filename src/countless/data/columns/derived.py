"""Derived columns: SQL expressions over a row of the table that become columns of the model.

The table itself does not have them. They are computed whenever it is opened.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from countless.data.columns.types import quote_identifier
from countless.errors import OptionError

MOST_LISTED = 20  # names of columns in a message


@dataclass(frozen=True)
class Derived:
    """A derived column: its name, the SQL that computes it, and the columns of the table in this SQL."""

    name: str
    sql: str
    columns: tuple[str, ...]


def select_derived(table: str, derived: Iterable[Derived]) -> str:
    """SQL for the rows of ``table`` with the ``derived`` columns added.

    >>> select_derived("t", [Derived("low", "LOWER(city)", ("city",))])
    'SELECT *, LOWER(city) AS "low" FROM t'
    """
    expressions = (f"{column.sql} AS {quote_identifier(column.name)}" for column in derived)
    return f"SELECT {', '.join(['*', *expressions])} FROM {table}"


def computable(derived: Sequence[Derived], names: Iterable[str]) -> list[Derived]:
    """The derived columns that can be added to a table with columns of these ``names``, and are not there yet."""
    present = {name.casefold() for name in names}
    return [
        column
        for column in derived
        if column.name.casefold() not in present and all(name.casefold() in present for name in column.columns)
    ]


def check_derived(derived: Sequence[Derived], names: Sequence[str]) -> None:
    """Raise an OptionError if a derived column does not fit a table with columns of these ``names``."""
    by_folded_name = {name.casefold(): name for name in names}
    for column in derived:
        for name in column.columns:
            if name.casefold() not in by_folded_name:
                close = difflib.get_close_matches(name.casefold(), list(by_folded_name), 1)
                more = " ..." if len(names) > MOST_LISTED else ""
                listed = f"the columns are {', '.join(names[:MOST_LISTED])}{more}"
                hint = f'did you mean "{by_folded_name[close[0]]}"?' if close else listed
                raise OptionError(f'{{derive}} {column.sql} AS {column.name}: unknown column "{name}": {hint}')
    for column in derived:
        folded = column.name.casefold()
        if folded in by_folded_name:
            raise OptionError(
                f'{{derive}} {column.sql} AS {column.name}: there is a column "{by_folded_name[folded]}" already: '
                "give another name after AS"
            )
        by_folded_name[folded] = column.name
