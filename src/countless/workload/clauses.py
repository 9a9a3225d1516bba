"""User workloads: reads the clauses that a user expects to ask, and finds the columns that they filter."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from countless.data.columns.schema import Schema
from countless.data.sources.regular_files import read_text
from countless.errors import DataError, QueryError, QuerySyntaxError
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.parsing.sql import DIALECT
from countless.query.predicate import Where
from countless.region import FREE, Region
from countless.workload.queries import json_lines

Workload = str | os.PathLike[str] | Sequence[Where]


@dataclass(frozen=True)
class WorkloadClause:
    """A clause and its position: its first line in a file, or its number in a list, from 1."""

    where: Where
    number: int
    path: Path | None = None

    def named(self, error: QueryError) -> QueryError:
        """The error with the position of the clause in its message."""
        position = f"clause {self.number} of the workload" if self.path is None else f"{self.path}, line {self.number}"
        error.message = f"{position}: {error.message}"
        return error


@dataclass(frozen=True)
class WorkloadColumns:
    """The sets of columns that the queries of a workload filter together.

    ``sets`` maps the indexes of columns to the number of queries that filter them together. A query that is a union of
    several boxes counts as a fraction for each. ``queries`` of them filter columns, ``passed_over`` do not.
    """

    queries: int
    passed_over: int
    sets: dict[tuple[int, ...], float]


def read_clauses(workload: Workload) -> list[WorkloadClause]:
    """The clauses of a file or a list.

    A file has one WHERE clause or SELECT per line, or statements of several lines, each with a semicolon after it; or
    JSON lines as ``countless evaluate --save`` writes them. Comments are those of SQL.
    """
    if not isinstance(workload, str | os.PathLike):
        if not workload:
            raise DataError("the workload holds no queries: give the WHERE clauses that you expect")
        return [WorkloadClause(where, number) for number, where in enumerate(workload, 1)]
    path = Path(workload)
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the workload {path}: {error}; give a text file of WHERE clauses") from None
    if text.lstrip().startswith("{"):
        clauses = [WorkloadClause(query["where"], number, path) for number, query in json_lines(text, path, where=str)]
    else:
        clauses = [*_statements(text, path)]
    if not clauses:
        raise DataError(f"the workload {path} holds no queries: write a WHERE clause on each line")
    return clauses


def asked_columns(schema: Schema, clauses: Iterable[WorkloadClause]) -> WorkloadColumns:
    """The columns that the clauses filter. A clause that does not fit the table is an error with its position."""
    compiler = CachedCompiler.of(Compiler(schema))
    queries, passed_over = 0, 0
    sets: dict[tuple[int, ...], float] = defaultdict(float)
    for clause in clauses:
        try:
            region = compiler.compile(clause.where).region
        except QueryError as error:
            raise clause.named(error) from None
        filtered = _filtered(schema, region)
        queries, passed_over = queries + bool(filtered), passed_over + (not filtered)
        for columns in filtered:
            sets[columns] += 1 / len(filtered)
    return WorkloadColumns(queries, passed_over, dict(sorted(sets.items())))


def _filtered(schema: Schema, region: Region) -> list[tuple[int, ...]]:
    """The columns, other than text, that each box filters; boxes that filter none are left out."""
    boxes = (
        tuple(
            schema.column_of(box_filter.positions[0])
            for box_filter in box.filters
            if box_filter.constraint.start != FREE
        )
        for box in region.boxes
    )
    return [columns for columns in boxes if columns]


def _statements(text: str, path: Path) -> Iterator[WorkloadClause]:
    """The statements of SQL: up to each semicolon, or one per line if there is no semicolon."""
    tokens = _tokens(text, path)
    by_line = not any(token.token_type is TokenType.SEMICOLON for token in tokens)
    statement: list[Token] = []
    for token in tokens:
        ends = token.token_type is TokenType.SEMICOLON
        if statement and (ends or (by_line and _starting_line(token, text) > statement[-1].line)):
            yield _clause(statement, text, path)
            statement = []
        if not ends:
            statement.append(token)
    if statement:
        yield _clause(statement, text, path)


def _clause(statement: list[Token], text: str, path: Path) -> WorkloadClause:
    first, last = statement[0], statement[-1]
    return WorkloadClause(text[first.start : last.end + 1], _starting_line(first, text), path)


def _starting_line(token: Token, text: str) -> int:
    """The line on which a token begins: sqlglot has the line on which it ends."""
    return token.line - text.count("\n", token.start, token.end)


def _tokens(text: str, path: Path) -> list[Token]:
    try:
        return sqlglot.tokenize(text, dialect=DIALECT)
    except TokenError:
        lines = enumerate(text.split("\n"), 1)
        number = next((number for number, line in lines if not _has_tokens(line)), 1)
        raise QuerySyntaxError(f"{path}, line {number}: a quote or a comment that begins here has no end") from None


def _has_tokens(line: str) -> bool:
    try:
        sqlglot.tokenize(line, dialect=DIALECT)
    except TokenError:
        return False
    return True
