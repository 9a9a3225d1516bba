"""Schema discovery: scans of a table that find the types, domains, grids and alphabets of its columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from countless.data.columns.domains import Domains
from countless.data.columns.grids.grid_knots import read_grid
from countless.data.columns.schema import Column
from countless.data.columns.strings.alphabet import read_text
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import FLOATS, TEXT, is_signed, quote_identifier, stored_type
from countless.data.sources.source import Source

Few = Callable[[str, int], bool]  # whether this many values of a column are few enough for a code each


class Finder(Protocol):
    """Knows the columns of one table."""

    def columns(self) -> list[tuple[str, str]]:
        """Name and DuckDB type of every column."""
        ...

    def left_structs(self) -> Mapping[str, str]:
        """Why structs, by name, were not flattened."""
        ...

    def uuids(self) -> frozenset[str]:
        """The names of the columns of type UUID, which are read as strings."""
        ...

    def facts(self, wanted: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        """The number of rows; of every column about how many values it has, and the mean length of its strings.

        Of columns that are not ``wanted`` nothing is read.
        """
        ...

    def signed(self) -> frozenset[str]:
        """The names of the columns, of those whose ``facts`` were read, that have a negative zero or NaN."""
        ...

    def domains(self, types: dict[str, str], few: Few) -> dict[str, Column]:
        """Of some columns, by name with their types, those that have few values, with all of them."""
        ...

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        """A column as a grid of about this many cells."""
        ...

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        """A column of a table of this many rows as text, with its alphabet; strings are cut at ``length``."""
        ...


class Scans:
    """Finds everything in scans of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._signed: frozenset[str] = frozenset()

    def columns(self) -> list[tuple[str, str]]:
        return self.source.columns()

    def left_structs(self) -> Mapping[str, str]:
        return self.source.left_structs

    def uuids(self) -> frozenset[str]:
        return self.source.uuids

    def facts(self, wanted: Collection[str]) -> tuple[int, list[tuple[int, float | None]]]:
        facts = []
        for name, kind in self.columns():
            column = quote_identifier(name)
            if name not in wanted:
                facts.append("0, NULL, FALSE")
                continue
            length = f"avg(length(CAST({column} AS VARCHAR)))" if stored_type(kind) == TEXT else "NULL"
            signed = f"coalesce(bool_or({is_signed(column)}), FALSE)" if kind in FLOATS else "FALSE"
            facts.append(f"approx_count_distinct({column}), {length}, {signed}")
        rows, *found = self.source.rows(f"SELECT count(*), {', '.join(facts)} FROM {self.source.table}")[0]
        self._signed = frozenset(name for (name, _), own in zip(self.columns(), found[2::3], strict=True) if own)
        return int(rows), list(zip(map(int, found[::3]), found[1::3], strict=True))

    def signed(self) -> frozenset[str]:
        return self._signed

    def domains(self, types: dict[str, str], few: Few) -> dict[str, Column]:
        with Domains(self.source, types) as domains:
            return {name: domains.column(name) for name, count in domains.counts().items() if few(name, count)}

    def grid(self, name: str, kind: str, most_cells: int) -> Column:
        return read_grid(self.source, name, kind, most_cells)

    def text(self, name: str, kind: str, rows: int, length: int | None) -> TextColumn:
        return read_text(self.source, name, kind, rows, length)
