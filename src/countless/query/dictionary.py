"""A predicate on one column, evaluated on that column's distinct values in DuckDB: what it means.

Of a column with a grid it has the knots only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from countless.data.schema import Column, Schema
from countless.data.source import connect, first_line
from countless.errors import QueryError, QueryTypeError, UnsupportedQueryError
from countless.query.predicate import DIALECT

Codes = Any  # a set of a column's values: a BoolArray over its codes, or the Language of a text column


@dataclass(frozen=True, eq=False)
class Truth:
    """For each value, and NULL if it occurs: is a predicate true, is it false? If neither, it is NULL."""

    true: Codes
    false: Codes


class Dictionary:
    """The domains of a schema as tables of a private DuckDB, made when first needed. Safe to share by threads."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._tables: set[int] = set()

    def truth(self, index: int | None, predicate: exp.Expr) -> Truth:
        """Where ``predicate``, which names no column but ``schema.columns[index]``, is true and where it is false.

        Without a column (``index`` None) the predicate is a constant and the arrays have one element.
        """
        renamed = predicate.transform(lambda node: exp.column("value") if isinstance(node, exp.Column) else node)
        condition = f"({renamed.sql(dialect=DIALECT, comments=False)}) AND TRUE"
        with self._lock:
            try:
                if index is None:
                    result = self._connect().execute(f"SELECT {condition} AS truth").fetchnumpy()
                else:
                    table = self._table(index)
                    result = (
                        self._connect().execute(f"SELECT {condition} AS truth FROM {table} ORDER BY code").fetchnumpy()
                    )
            except duckdb.Error as error:
                raise explain_error(error) from None
        truth = result["truth"]
        if len(truth) != (1 if index is None else len(_texts(self.schema.columns[index]))):
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a filter")
        known = ~np.ma.getmaskarray(truth)
        true = np.ma.getdata(truth).astype(bool) & known
        return Truth(true, ~true & known)

    def constants(self, kind: str, nodes: Sequence[exp.Expr]) -> list[tuple[str, str | None]] | None:
        """Type and text of each constant as a column of type ``kind`` meets it, or None if DuckDB objects to one.

        A string literal takes on the column's type; anything else keeps its own.
        """
        found = []
        for node in nodes:
            sql = node.sql(dialect=DIALECT, comments=False)
            found.append(f"CAST({sql} AS {kind})" if isinstance(node, exp.Literal) and node.is_string else f"({sql})")
        selected = ", ".join(f"typeof({sql}), CAST({sql} AS VARCHAR)" for sql in found)
        with self._lock:
            try:
                rows = self._connect().execute(f"SELECT {selected}").fetchall()
            except duckdb.Error:
                return None
        return list(zip(rows[0][::2], rows[0][1::2], strict=True)) if len(rows) == 1 else None

    def folded(self, function: str, characters: Sequence[str]) -> list[str]:
        """What ``function`` (lower or upper) makes of each character."""
        with self._lock:
            rows = self._connect().execute(f"SELECT {function}(unnest($1::VARCHAR[]))", [list(characters)]).fetchall()
        return [row[0] for row in rows]

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = locked_connection()
        return self._connection

    def _table(self, index: int) -> str:
        name = f"domain_{index}"
        if index not in self._tables:
            column = self.schema.columns[index]
            self._connect().execute(
                f"CREATE TEMP TABLE {name} AS SELECT code, CAST(text AS {column.type}) AS value "
                "FROM (SELECT unnest($texts::VARCHAR[]) AS text, unnest(range($size::BIGINT)) AS code)",
                {"texts": _texts(column), "size": len(_texts(column))},
            )
            self._tables.add(index)
        return name


def locked_connection() -> duckdb.DuckDBPyConnection:
    """A private DuckDB for what users wrote: it may compute, but not reach files, the network or settings."""
    connection = connect()
    connection.execute("SET enable_external_access = false")
    connection.execute("SET threads = 1")
    connection.execute("SET lock_configuration = true")
    return connection


def _texts(column: Column) -> list[str | None]:
    return [*column.values, None] if column.has_null else list(column.values)


def explain_error(error: duckdb.Error) -> QueryError:
    """DuckDB's error as one of ours."""
    message = first_line(error).split("Error: ", 1)[-1]
    if "GROUP BY" in message or "aggregate" in message.lower():
        return UnsupportedQueryError("an aggregate has no value for a single row: only filters on rows can be counted")
    if isinstance(error, duckdb.CatalogException):
        return UnsupportedQueryError(f"DuckDB does not know this: {message}")
    return QueryTypeError(f"the types do not fit: {message}")
