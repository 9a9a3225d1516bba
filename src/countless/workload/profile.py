"""Column profiles for random queries: the type, the number of distinct values and the string lengths of a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from countless.data.columns.types import INTEGERS, TEXT, TIMES, is_number, quote_identifier, stored_type
from countless.data.sources.source import Source
from countless.errors import DataError

LONG = 12  # characters of a string, on average, from which on a column may be text
MOSTLY = 0.1  # distinct values per row, likewise


@dataclass(frozen=True)
class ColumnProfile:
    """A column: the type in which it can be asked about, how many values it has, and how long its strings are.

    ``distinct`` is approximate. ``length`` is the mean number of characters, 0 unless the column holds strings.
    """

    name: str
    type: str
    rows: int
    distinct: int
    has_null: bool
    length: float = 0.0

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return is_number(self.type)

    @property
    def is_integer(self) -> bool:
        """Whether it holds whole numbers."""
        return self.type in INTEGERS

    @property
    def is_string(self) -> bool:
        """Whether it holds strings."""
        return self.type == TEXT

    @property
    def is_date(self) -> bool:
        """Whether it holds days, or moments in time."""
        return self.type in TIMES and self.type != "TIME"

    @property
    def is_text(self) -> bool:
        """Whether it holds long strings that are mostly different."""
        return self.is_string and self.length >= LONG and self.distinct >= MOSTLY * self.rows


def profile(source: Source, names: Iterable[str] | None = None) -> tuple[ColumnProfile, ...]:
    """The columns of a table that can be asked about, or those of them that are named.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT range AS n, 'x' AS s, [1] AS l FROM range(3)"))
    >>> [(column.name, column.distinct, column.length) for column in profile(source)]
    [('n', 3, 0.0), ('s', 1, 1.0)]
    """
    wanted = None if names is None else {name.casefold() for name in names}
    columns = [
        (name, kind)
        for name, declared in source.columns()
        if (kind := stored_type(declared)) is not None and (wanted is None or name.casefold() in wanted)
    ]
    if not columns:
        raise DataError("the table has no column that can be asked about")
    figures = ["count(*)"]
    for name, kind in columns:
        value = quote_identifier(name)
        length = f"avg(length(CAST({value} AS VARCHAR)))" if kind == TEXT else "0"
        figures += [f"approx_count_distinct({value})", f"count({value})", f"coalesce({length}, 0)"]
    rows, *found = source.rows(f"SELECT {', '.join(figures)} FROM {source.table}")[0]
    if not rows:
        raise DataError("the table has no rows: there is nothing to ask about")
    return tuple(
        ColumnProfile(name, kind, int(rows), int(distinct), int(known) < int(rows), float(length))
        for (name, kind), distinct, known, length in zip(columns, found[::3], found[1::3], found[2::3], strict=True)
    )


def draw_rows(
    columns: Sequence[tuple[str, str]], source: Source, rng: np.random.Generator, count: int
) -> list[tuple[str | None, ...]]:
    """The named columns of ``count`` random rows, their values as DuckDB prints them in the types that are given."""
    total = source.count()
    if total == 0:
        raise DataError("the table has no rows: there is nothing to ask about")
    wanted = rng.integers(total, size=count)
    values = ", ".join(f"CAST(CAST({quote_identifier(name)} AS {kind}) AS VARCHAR)" for name, kind in columns)
    numbers = ", ".join(map(str, sorted(set(wanted.tolist()))))
    number = quote_identifier(f"{source.name}_row")  # no column of the source is called that
    numbered = f"SELECT *, row_number() OVER () - 1 AS {number} FROM {source.table}"
    rows = source.rows(f"SELECT {number}, {values} FROM ({numbered}) WHERE {number} IN ({numbers})")
    by_number = {int(row[0]): row[1:] for row in rows}
    return [by_number[int(row)] for row in wanted]
