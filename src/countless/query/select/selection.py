"""What a SELECT with aggregates asks: its groups, its aggregates, and the statement over the table of groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier

TABLE, GROUPED = "__rows", "__groups"  # the table as it was, without rows, and the groups
COUNT, SUM, AVERAGE = "count", "sum", "avg"


@dataclass(frozen=True)
class RowExpression:
    """An expression of one row, which evidence rows are asked for: as SQL, and the places of the columns in it."""

    sql: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Aggregate:
    """A function of the rows of a group: ``kind`` is DuckDB's name of it, ``share`` a quantile's, as it was written."""

    kind: str
    column: int | RowExpression | None = None  # None is count(*)
    share: str = ""

    def sql(self, schema: Schema) -> str:
        """The aggregate as DuckDB takes it.

        >>> from countless.data.columns.schema import Column
        >>> schema = Schema(9, (Column("n", "INTEGER", ("1",), False),))
        >>> Aggregate("count").sql(schema), Aggregate("quantile_cont", 0, "0.9").sql(schema)
        ('count(*)', 'quantile_cont("n", 0.9)')
        """
        if self.column is None:
            return "count(*)"
        share = f", {self.share}" if self.share and self.kind != "median" else ""
        column = self.column
        measured = column.sql if isinstance(column, RowExpression) else quote_identifier(schema.names[column])
        return f"{self.kind}({measured}{share})"


@dataclass(frozen=True)
class Selection:
    """A statement that was understood.

    ``groups`` are the places of the grouped columns in the schema; if one is an expression, all are. ``where`` is the
    condition, if there is one, with blanks in place of what stands before it. ``outer`` is SQL over the table of
    groups, whose columns have the names that :func:`group_name` and :func:`aggregate_name` give. ``plain`` has for each
    column of the result the aggregate that it is, if it is nothing more. ``selected`` and ``source`` are what stands
    before and after FROM in a statement that is like this one as far as DuckDB's names of columns are concerned.
    """

    sql: str
    where: str | None
    groups: tuple[int, ...] | tuple[RowExpression, ...]
    aggregates: tuple[Aggregate, ...]
    plain: tuple[int | None, ...]
    outer: exp.Select
    selected: str
    source: str

    def named(self, more: Iterable[str]) -> str:
        """The statement whose result has DuckDB's names for the columns, and ``more`` after them."""
        return f"SELECT {', '.join((self.selected, *more))}\nFROM {self.source}"


def group_name(place: int) -> str:
    """How the column of a group is called in the table of groups."""
    return f"__g{place}"


def aggregate_name(place: int, bound: str = "") -> str:
    """How an aggregate is called in the table of groups, or one end ("low", "high") of its error bar."""
    return f"__a{place}{bound}"
