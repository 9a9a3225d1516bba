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
from countless.query.sandbox.process import Sandbox, borrowed, owner
from countless.query.select.aggregate_names import KNOWN
from countless.query.select.selection import GROUPED, TABLE, Selection, aggregate_name, group_name

MOST_HEADERS = 1_000  # that are remembered
BOUNDS = ("low", "high")  # of an error bar
PLACE = "__place"  # of a group; also what makes an aggregate over groups an error


@dataclass(frozen=True)
class Header:
    """The names of a result's columns, and the types of the statement's aggregates."""

    names: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The groups by columns: one for each of the statement's GROUP BY, and one for each of its aggregates.

    Values are as DuckDB prints them.
    ``bars`` has the low and the high ends of aggregates' error bars; it is empty if none are wanted. ``types`` are
    those of the groups.
    """

    groups: Sequence[Sequence[str | None]]
    aggregates: Sequence[Sequence[str | None]]
    size: int
    types: Sequence[str]
    bars: Sequence[tuple[Sequence[str | None], Sequence[str | None]]] = ()


class Outer:
    """Runs outer statements about the table of ``schema`` in a sandbox. Safe to share by threads."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._number = owner()
        self._headers: dict[str, Header] = {}  # by the statement, which has no condition on rows

    def header(self, selection: Selection) -> Header:
        """How DuckDB calls the columns of the result and the type it gives each aggregate, or what it objects to."""
        sql = selection.named(aggregate.sql(self.schema) for aggregate in selection.aggregates)
        if sql not in self._headers:
            with _explaining(selection), borrowed() as sandbox:
                self._declare(sandbox)
                rows = sandbox.ask(f"DESCRIBE {sql}")
            if len(self._headers) >= MOST_HEADERS:
                self._headers.clear()
            count = len(selection.plain)
            self._headers[sql] = Header(
                tuple(str(row[0]) for row in rows[:count]), tuple(str(row[1]) for row in rows[count:])
            )
        return self._headers[sql]

    def run(self, selection: Selection, header: Header, table: GroupTable) -> Frame:
        """The result of the statement over the groups in ``table``."""
        bars = [place for place in selection.plain if place is not None] if table.bars else []
        outer = selection.outer.copy()
        for place in bars:
            for bound in BOUNDS:
                outer.append("expressions", exp.column(aggregate_name(place, bound)))
        outer.append("expressions", exp.column(PLACE))
        with _explaining(selection), borrowed() as sandbox:
            check_functions(sql := written(outer))
            _, described = sandbox.run_in_turn([_created(header.types, table), (f"DESCRIBE {sql}", None)])
            types = [str(row[1]) for row in described]
            plain = written(_without_zones(outer, types))
            rows, _ = sandbox.run_in_turn([(plain, None), (f"DROP TABLE {GROUPED}", None)])
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        ends = [f"{header.names[at]}_{bound}" for at in _plain_places(selection) for bound in BOUNDS if bars]
        names = [*header.names, *ends]
        order = _beside(selection) if bars else range(len(header.names))
        return Frame(
            tuple(names[at] for at in order), tuple(types[at] for at in order), tuple(columns[at] for at in order)
        )

    def _declare(self, sandbox: Sandbox) -> None:
        """Let the sandbox have the table as it was, without rows."""
        if not sandbox.has(TABLE, self._number):
            columns = (f"{quote_identifier(column.name)} {column.type}" for column in self.schema.columns)
            made = ", ".join((f"{PLACE} BIGINT", *columns))
            sandbox.table(TABLE, self._number, f"CREATE OR REPLACE TEMP TABLE {TABLE} ({made})")


def _created(types: Sequence[str], table: GroupTable) -> tuple[str, list[list[Any]]]:
    """The statement that makes the table of groups, whose aggregates have these ``types``, and its parameters."""
    columns: list[tuple[str, str, Sequence[Any]]] = [(PLACE, "BIGINT", range(table.size))]
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
    made = f"CREATE OR REPLACE TEMP TABLE {GROUPED} AS SELECT {selected}"
    return made, [list(values) for *_, values in columns]


@contextmanager
def _explaining(selection: Selection) -> Iterator[None]:
    """Errors of the sandbox are about the statement."""
    try:
        yield
    except duckdb.Error as error:
        raise _explained(error, selection.sql) from None
    except QueryError as error:
        error.clause, error.span = selection.sql, None
        raise


def _without_zones(statement: exp.Select, types: Sequence[str]) -> exp.Select:
    """The same with plain times in UTC where ``types`` have a zone, for which DuckDB would need another package."""
    for node, kind in zip(statement.expressions, types, strict=True):
        if kind == ZONED:
            inner = node.this if isinstance(node, exp.Alias) else node
            inner.replace(exp.cast(inner.copy(), "TIMESTAMP"))
    return statement


def _plain_places(selection: Selection) -> list[int]:
    """Which columns of the result are plain aggregates."""
    return [at for at, place in enumerate(selection.plain) if place is not None]


def _beside(selection: Selection) -> list[int]:
    """The order in which the ends of every error bar stand after what they are of."""
    found, after = [], len(selection.plain)
    for at, place in enumerate(selection.plain):
        found.append(at)
        if place is not None:
            found += [after, after + 1]
            after += 2
    return found


def _explained(error: duckdb.Error, sql: str) -> QueryError:
    """DuckDB's error as one of ours."""
    message = first_line(error).split("Error: ", 1)[-1]
    if "GROUP BY" in message or "aggregate" in message.lower():
        return UnsupportedQueryError(f"an aggregate here cannot be answered: use {KNOWN} of columns", sql)
    if isinstance(error, duckdb.CatalogException):
        return UnsupportedQueryError(f"DuckDB does not know this: {message}", sql)
    return QueryTypeError(f"DuckDB cannot compute this: {message}", sql)
