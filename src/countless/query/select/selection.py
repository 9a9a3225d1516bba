"""An analysed SELECT with aggregates: its groups, its aggregates, and the statement over the table of groups."""

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
    """An expression that is evaluated on evidence rows: its SQL, and the indexes of its columns."""

    sql: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Aggregate:
    """A function of the rows of a group: ``kind`` is its name in DuckDB, ``share`` a quantile's share as written."""

    kind: str
    column: int | RowExpression | None = None  # None is count(*)
    share: str = ""

    def sql(self, schema: Schema) -> str:
        """The aggregate as SQL.

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
    """An analysed statement.

    ``groups`` are the indexes of the grouped columns in the schema; if one is an expression, all are. ``where`` is the
    condition, if there is one, with blanks in place of the text before it. ``outer`` is SQL over the table of groups,
    whose columns have the names of :func:`group_name` and :func:`aggregate_name`. ``plain`` has, for each column of the
    result, the index of the aggregate that it is; None if it is anything else. ``selected`` and ``source`` are the text
    before and after FROM of a statement whose columns DuckDB names as those of this one.
    """

    sql: str
    where: str | None
    groups: tuple[int, ...] | tuple[RowExpression, ...]
    aggregates: tuple[Aggregate, ...]
    plain: tuple[int | None, ...]
    outer: exp.Select
    selected: str
    source: str

    def named(self, extra_columns: Iterable[str]) -> str:
        """A statement whose columns DuckDB names as those of this one, with ``extra_columns`` after them."""
        return f"SELECT {', '.join((self.selected, *extra_columns))}\nFROM {self.source}"


def group_name(index: int) -> str:
    """The name of a group's column in the table of groups."""
    return f"__g{index}"


def aggregate_name(index: int, bound: str = "") -> str:
    """The name of an aggregate's column in the table of groups, or of one end ("low", "high") of its error bar."""
    return f"__a{index}{bound}"
