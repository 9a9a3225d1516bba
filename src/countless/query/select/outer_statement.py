"""The outer statement of a SELECT: DuckDB evaluates it on a small table with one row per group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier
from countless.data.frame import ZONED, Frame
from countless.data.sources.source import first_line
from countless.errors import QueryError, QueryTypeError, UnsupportedQueryError
from countless.query.parsing.sql import written
from countless.query.sandbox.functions import check_functions
from countless.query.sandbox.process import Sandbox, borrowed, new_owner
from countless.query.select.aggregate_names import KNOWN
from countless.query.select.selection import GROUPED, TABLE, Selection, aggregate_name, group_name

MOST_HEADERS = 1_000  # that are cached
BOUNDS = ("low", "high")  # of an error bar
GROUP_INDEX = "__place"  # because of it, an aggregate over groups is an error


@dataclass(frozen=True)
class Header:
    """The names of a result's columns, and the types of the statement's aggregates."""

    names: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The table of groups, column by column: the columns of GROUP BY, and those of the aggregates.

    Values are as DuckDB prints them. ``bars`` has the low and the high ends of the aggregates' error bars; it is empty
    if none are requested. ``types`` are the types of the groups' columns.
    """

    groups: Sequence[Sequence[str | None]]
    aggregates: Sequence[Sequence[str | None]]
    size: int
    types: Sequence[str]
    bars: Sequence[tuple[Sequence[str | None], Sequence[str | None]]] = ()


class Outer:
    """Runs outer statements on the table of ``schema`` in a sandbox. Safe to share by threads."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._owner = new_owner()
        self._headers: dict[str, Header] = {}  # by the statement without its WHERE

    def header(self, selection: Selection) -> Header:
        """DuckDB's names for the result's columns and its types of the aggregates; raises DuckDB's error if any."""
        sql = selection.named(aggregate.sql(self.schema) for aggregate in selection.aggregates)
        if sql not in self._headers:
            with _errors_of_statement(selection), borrowed() as sandbox:
                self._declare(sandbox)
                rows = sandbox.run_user_sql(f"DESCRIBE {sql}")
            if len(self._headers) >= MOST_HEADERS:
                self._headers.clear()
            count = len(selection.plain)
            self._headers[sql] = Header(
                tuple(str(row[0]) for row in rows[:count]), tuple(str(row[1]) for row in rows[count:])
            )
        return self._headers[sql]

    def run(self, selection: Selection, header: Header, table: GroupTable) -> Frame:
        """The result of the statement over the groups in ``table``."""
        bars = [index for index in selection.plain if index is not None] if table.bars else []
        outer = selection.outer.copy()
        for index in bars:
            for bound in BOUNDS:
                outer.append("expressions", exp.column(aggregate_name(index, bound)))
        outer.append("expressions", exp.column(GROUP_INDEX))
        with _errors_of_statement(selection), borrowed() as sandbox:
            check_functions(sql := written(outer))
            _, described = sandbox.run_in_turn([_create_statement(header.types, table), (f"DESCRIBE {sql}", None)])
            types = [str(row[1]) for row in described]
            without_zones = written(_without_zones(outer, types))
            rows, _ = sandbox.run_in_turn([(without_zones, None), (f"DROP TABLE {GROUPED}", None)])
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        ends = [f"{header.names[column]}_{bound}" for column in _plain_columns(selection) for bound in BOUNDS if bars]
        names = [*header.names, *ends]
        order = _columns_with_bars(selection) if bars else range(len(header.names))
        return Frame(
            tuple(names[column] for column in order),
            tuple(types[column] for column in order),
            tuple(columns[column] for column in order),
        )

    def _declare(self, sandbox: Sandbox) -> None:
        """Create the table without its rows, if the sandbox does not have it."""
        if not sandbox.has(TABLE, self._owner):
            columns = (f"{quote_identifier(column.name)} {column.type}" for column in self.schema.columns)
            declarations = ", ".join((f"{GROUP_INDEX} BIGINT", *columns))
            sandbox.table(TABLE, self._owner, f"CREATE OR REPLACE TEMP TABLE {TABLE} ({declarations})")


def _create_statement(types: Sequence[str], table: GroupTable) -> tuple[str, list[list[Any]]]:
    """The statement that creates the table of groups, whose aggregates have these ``types``, and its parameters."""
    columns: list[tuple[str, str, Sequence[Any]]] = [(GROUP_INDEX, "BIGINT", range(table.size))]
    for index, (kind, texts) in enumerate(zip(table.types, table.groups, strict=True)):
        columns.append((group_name(index), kind, texts))
    for index, (kind, values) in enumerate(zip(types, table.aggregates, strict=True)):
        columns.append((aggregate_name(index), kind, values))
    for index, ends in enumerate(table.bars):
        for bound, values in zip(BOUNDS, ends, strict=True):
            columns.append((aggregate_name(index, bound), types[index], values))
    selected = ", ".join(
        f"unnest(CAST(${number} AS {kind}[])) AS {name}" for number, (name, kind, _) in enumerate(columns, 1)
    )
    create = f"CREATE OR REPLACE TEMP TABLE {GROUPED} AS SELECT {selected}"
    return create, [list(values) for *_, values in columns]


@contextmanager
def _errors_of_statement(selection: Selection) -> Iterator[None]:
    """Make errors of the sandbox errors about the statement."""
    try:
        yield
    except duckdb.Error as error:
        raise _explained(error, selection.sql) from None
    except QueryError as error:
        error.clause, error.span = selection.sql, None
        raise


def _without_zones(statement: exp.Select, types: Sequence[str]) -> exp.Select:
    """The statement with UTC times without a zone: for times with one, DuckDB needs another package."""
    for node, kind in zip(statement.expressions, types, strict=True):
        if kind == ZONED:
            inner = node.this if isinstance(node, exp.Alias) else node
            inner.replace(exp.cast(inner.copy(), "TIMESTAMP"))
    return statement


def _plain_columns(selection: Selection) -> list[int]:
    """The columns of the result that are aggregates and nothing else."""
    return [column for column, aggregate in enumerate(selection.plain) if aggregate is not None]


def _columns_with_bars(selection: Selection) -> list[int]:
    """The order of columns in which the ends of each error bar come right after their aggregate."""
    order, next_bound = [], len(selection.plain)
    for column, aggregate in enumerate(selection.plain):
        order.append(column)
        if aggregate is not None:
            order += [next_bound, next_bound + 1]
            next_bound += 2
    return order


def _explained(error: duckdb.Error, sql: str) -> QueryError:
    """DuckDB's error as one of ours."""
    message = first_line(error).split("Error: ", 1)[-1]
    if "GROUP BY" in message or "aggregate" in message.lower():
        return UnsupportedQueryError(f"an aggregate here cannot be answered: use {KNOWN} of columns", sql)
    if isinstance(error, duckdb.CatalogException):
        return UnsupportedQueryError(f"DuckDB does not know this: {message}", sql)
    return QueryTypeError(f"DuckDB cannot compute this: {message}", sql)
