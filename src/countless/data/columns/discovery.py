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

Few = Callable[[str, int], bool]  # whether this many values of a column are few enough for a code each


class Scans:
    """Finds out all about the columns of ``source``, in scans of it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._signed: frozenset[str] = frozenset()

    def facts(self, wanted: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        """The number of rows; of every column about how many values it has, and the mean length of its strings.

        Of columns that are not ``wanted`` the figures may be anything.
        """
        facts = []
        columns = self.source.columns()
        for name, kind in columns:
            column = quote_identifier(name)
            if name not in wanted:
                facts.append("0, NULL, FALSE")
                continue
            length = f"avg(length(CAST({column} AS VARCHAR)))" if stored_type(kind) == TEXT else "NULL"
            signed = f"coalesce(bool_or({is_signed(column)}), FALSE)" if kind in FLOATS else "FALSE"
            facts.append(f"approx_count_distinct({column}), {length}, {signed}")
        rows, *found = self.source.rows(f"SELECT count(*), {', '.join(facts)} FROM {self.source.table}")[0]
        self._signed = frozenset(name for (name, _), own in zip(columns, found[2::3], strict=True) if own)
        return int(rows), list(zip(map(int, found[::3]), found[1::3], strict=True))

    def signed(self) -> frozenset[str]:
        """The names of the columns, of those whose ``facts`` were read, that have a negative zero or NaN."""
        return self._signed

    def domains(self, types: dict[str, str], few: Few) -> dict[str, Column]:
        """Of some columns, by name with their types, those that have few values, with all of them."""
        with Domains(self.source, types) as domains:
            return {name: domains.column(name) for name, count in domains.counts().items() if few(name, count)}

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        """A column as a grid of about this many cells."""
        return read_grid(self.source, name, kind, most_cells)

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        """A column of a table of this many rows as text, with its alphabet; strings are cut at ``length``."""
        return read_text(self.source, name, kind, rows, length)


class Domains:
    """The distinct values of some columns, found in one scan and kept in a temporary table while they are needed."""

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
        """How many values every column has, NULL not counted."""
        if not self.types:
            return {}
        counts = ", ".join(f"list_count(c{index})" for index in range(len(self.types)))
        (found,) = self.source.rows(f"SELECT {counts} FROM {self.table}")
        return {name: int(count) for name, count in zip(self.types, found, strict=True)}

    def column(self, name: str) -> Column:
        """The column with its values in order, NULL last."""
        texts = self.source.rows(f"SELECT CAST(value AS VARCHAR) FROM ({self._codes(name)}) ORDER BY code")
        values = tuple(unsigned(str(text), self.types[name]) for (text,) in texts if text is not None)
        return Column(name, self.types[name], values, has_null=len(values) < len(texts))

    def _value(self, name: str) -> str:
        """The column's value in the type it is modelled in."""
        return sql_value(name, self.types[name])

    def _codes(self, name: str) -> str:
        """The column's values and their codes."""
        values = f"SELECT unnest(c{list(self.types).index(name)}) AS value FROM {self.table}"
        return f"SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) - 1 AS code FROM ({values})"
