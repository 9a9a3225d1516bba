"""Column profiles for random queries: the type, the number of distinct values and the string lengths of a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from countless.data.columns.types import INTEGERS, TEXT, TIMES, is_number, quote_identifier, stored_type
from countless.data.sources.source import Source
from countless.errors import DataError

LONG_LENGTH = 12  # least mean length of the strings of a text column
DISTINCT_SHARE = 0.1  # least number of distinct values per row of a text column


@dataclass(frozen=True)
class ColumnProfile:
    """A column: the type in which it can be queried, its number of distinct values, and the length of its strings.

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
        """Whether its values are numbers."""
        return is_number(self.type)

    @property
    def is_integer(self) -> bool:
        """Whether its values are integers."""
        return self.type in INTEGERS

    @property
    def is_string(self) -> bool:
        """Whether its values are strings."""
        return self.type == TEXT

    @property
    def is_date(self) -> bool:
        """Whether its values are dates or timestamps."""
        return self.type in TIMES and self.type != "TIME"

    @property
    def is_text(self) -> bool:
        """Whether its values are long strings that are mostly distinct."""
        return self.is_string and self.length >= LONG_LENGTH and self.distinct >= DISTINCT_SHARE * self.rows


def profile(source: Source, names: Iterable[str] | None = None) -> tuple[ColumnProfile, ...]:
    """Profiles of the columns that can be queried, or of those in ``names``.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT range AS n, 'x' AS s, [1] AS l FROM range(3)"))
    >>> [(column.name, column.distinct, column.length) for column in profile(source)]
    [('n', 3, 0.0), ('s', 1, 1.0)]
    """
    requested = None if names is None else {name.casefold() for name in names}
    columns = [
        (name, kind)
        for name, declared in source.columns()
        if (kind := stored_type(declared)) is not None and (requested is None or name.casefold() in requested)
    ]
    if not columns:
        raise DataError("the table has no column that can be queried")
    statistics = ["count(*)"]
    for name, kind in columns:
        value = quote_identifier(name)
        length = f"avg(length(CAST({value} AS VARCHAR)))" if kind == TEXT else "0"
        statistics += [f"approx_count_distinct({value})", f"count({value})", f"coalesce({length}, 0)"]
    rows, *values = source.rows(f"SELECT {', '.join(statistics)} FROM {source.table}")[0]
    if not rows:
        raise DataError("the table has no rows: there is nothing to query")
    return tuple(
        ColumnProfile(name, kind, int(rows), int(distinct), int(not_null) < int(rows), float(length))
        for (name, kind), distinct, not_null, length in zip(
            columns, values[::3], values[1::3], values[2::3], strict=True
        )
    )


def draw_rows(
    columns: Sequence[tuple[str, str]], source: Source, rng: np.random.Generator, count: int
) -> list[tuple[str | None, ...]]:
    """Columns, given by name and type, of ``count`` random rows; values are as DuckDB prints them in these types."""
    total = source.count()
    if total == 0:
        raise DataError("the table has no rows: there is nothing to query")
    row_numbers = rng.integers(total, size=count)
    values = ", ".join(f"CAST(CAST({quote_identifier(name)} AS {kind}) AS VARCHAR)" for name, kind in columns)
    number_list = ", ".join(map(str, sorted(set(row_numbers.tolist()))))
    number_column = quote_identifier(f"{source.name}_row")  # no column of the source is called that
    numbered = f"SELECT *, row_number() OVER () - 1 AS {number_column} FROM {source.table}"
    rows = source.rows(f"SELECT {number_column}, {values} FROM ({numbered}) WHERE {number_column} IN ({number_list})")
    by_number = {int(row[0]): row[1:] for row in rows}
    return [by_number[int(row)] for row in row_numbers]
