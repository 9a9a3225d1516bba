"""Domains: the distinct values of columns."""

from __future__ import annotations

from contextlib import nullcontext, suppress

from countless.data.columns.schema import Column
from countless.data.columns.types import quote_identifier, sql_value, unsigned
from countless.data.sources.source import Source
from countless.errors import SourceError


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
        with nullcontext() if kind is None else suppress(SourceError):  # a first error is the one to tell
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
