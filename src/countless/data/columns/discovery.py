"""Schema discovery: scans of a table that find the types, domains, grids and alphabets of its columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress

from countless.data.columns.grids.grid_knots import read_grid
from countless.data.columns.schema import Column
from countless.data.columns.strings.alphabet import read_text
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import FLOATS, TEXT, is_signed, quote_identifier, sql_value, stored_type, unsigned
from countless.data.sources.source import Source
from countless.errors import SourceError

IsSmall = Callable[[str, int], bool]  # whether a column, given its number of values, gets a code for each


class Scans:
    """Finds the types, domains, grids and alphabets of the columns of ``source``, by scanning it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._signed: frozenset[str] = frozenset()

    def statistics(self, requested: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        """The number of rows, and for every column its approximate number of values and mean string length.

        The figures of columns that are not ``requested`` are meaningless.
        """
        aggregates = []
        columns = self.source.columns()
        for name, kind in columns:
            column = quote_identifier(name)
            if name not in requested:
                aggregates.append("0, NULL, FALSE")
                continue
            length = f"avg(length(CAST({column} AS VARCHAR)))" if stored_type(kind) == TEXT else "NULL"
            signed = f"coalesce(bool_or({is_signed(column)}), FALSE)" if kind in FLOATS else "FALSE"
            aggregates.append(f"approx_count_distinct({column}), {length}, {signed}")
        rows, *figures = self.source.rows(f"SELECT count(*), {', '.join(aggregates)} FROM {self.source.table}")[0]
        counts, lengths, are_signed = figures[::3], figures[1::3], figures[2::3]
        self._signed = frozenset(name for (name, _), signed in zip(columns, are_signed, strict=True) if signed)
        return int(rows), list(zip(map(int, counts), lengths, strict=True))

    def signed(self) -> frozenset[str]:
        """The names of the columns with a negative zero or NaN, once :meth:`statistics` has read them."""
        return self._signed

    def domains(self, types: dict[str, str], is_small: IsSmall) -> dict[str, Column]:
        """The small columns among those of ``types``, with all their values; both by name."""
        with Domains(self.source, types) as domains:
            return {name: domains.column(name) for name, count in domains.counts().items() if is_small(name, count)}

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        """The column ``name`` as a grid of about ``most_cells`` cells."""
        return read_grid(self.source, name, kind, most_cells)

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        """The column ``name`` of a table of ``rows`` rows as text, with its alphabet; strings are cut at ``length``."""
        return read_text(self.source, name, kind, rows, length)


class Domains:
    """The distinct values of some columns, found in one scan and held in a temporary table inside a ``with`` block."""

    def __init__(self, source: Source, types: dict[str, str]) -> None:
        self.source = source
        self.types = types  # by the column's name
        self.table = quote_identifier(f"{source.name}_domains")

    def __enter__(self) -> Domains:
        lists = ", ".join(
            [f"list(DISTINCT {self._value(name)}) AS c{index}" for index, name in enumerate(self.types)] or ["NULL"]
        )
        self.source.run(f"CREATE TEMP TABLE {self.table} AS SELECT {lists} FROM {self.source.table}")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with nullcontext() if kind is None else suppress(SourceError):  # a first error is the one to report
            self.source.run(f"DROP TABLE {self.table}")

    def counts(self) -> dict[str, int]:
        """The number of values of each column, NULL not counted."""
        if not self.types:
            return {}
        counts = ", ".join(f"list_count(c{index})" for index in range(len(self.types)))
        (row,) = self.source.rows(f"SELECT {counts} FROM {self.table}")
        return {name: int(count) for name, count in zip(self.types, row, strict=True)}

    def column(self, name: str) -> Column:
        """The column with its values in order, NULL last."""
        texts = self.source.rows(f"SELECT CAST(value AS VARCHAR) FROM ({self._codes(name)}) ORDER BY code")
        values = tuple(unsigned(str(text), self.types[name]) for (text,) in texts if text is not None)
        return Column(name, self.types[name], values, has_null=len(values) < len(texts))

    def _value(self, name: str) -> str:
        """SQL for the column's value in the type that it is modelled in."""
        return sql_value(name, self.types[name])

    def _codes(self, name: str) -> str:
        """SQL for the column's values and their codes."""
        values = f"SELECT unnest(c{list(self.types).index(name)}) AS value FROM {self.table}"
        return f"SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) - 1 AS code FROM ({values})"
