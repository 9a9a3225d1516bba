"""A preflight check: every kind of query of calibration and evaluation runs on a few rows before training.

Training takes minutes to hours, and calibration comes after it. If the database cannot evaluate filters on a column,
the user must learn that before training.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from countless.data.columns.names import exclude_option
from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError
from countless.query.compile import Compiler
from countless.workload import every_filter, every_pattern

ROWS = 20  # rows of the table that the questions are evaluated on


def preflight(source: Source, schema: Schema) -> None:
    """Ask ``source`` about every column of ``schema``, and compile the same questions as a model does.

    Raises:
        DataError: a column cannot be asked about; the message names it and what to do.
    """
    clauses = dict(_clauses(source, schema))
    try:
        _ask(source, [clause for column_clauses in clauses.values() for clause in column_clauses])
    except CountlessError:
        for name, column_clauses in clauses.items():
            with _named(name):
                _ask(source, column_clauses)
        raise
    compiler = Compiler(schema)
    for name, column_clauses in clauses.items():
        with _named(name):
            for clause in column_clauses:
                compiler.compile(clause)


def _clauses(source: Source, schema: Schema) -> Iterator[tuple[str, list[str]]]:
    """The questions about each column, by its name."""
    for column in schema.coded:
        with _named(column.name):
            yield column.name, every_filter(column)
    for text in schema.texts:
        name = quote_identifier(text.name)
        with _named(text.name):
            rows = source.rows(f"SELECT CAST({name} AS VARCHAR) FROM {source.table} WHERE {name} <> '' LIMIT {ROWS}")
            yield text.name, every_pattern(text, [str(value) for (value,) in rows])


def _ask(source: Source, clauses: list[str]) -> None:
    """Count a few rows by all clauses in one statement, which fails if the database cannot evaluate one of them."""
    cases = ", ".join(f"count(CASE WHEN {clause}\nTHEN 1 END)" for clause in clauses)
    source.rows(f"SELECT {cases} FROM (SELECT * FROM {source.table} LIMIT {ROWS})")


@contextmanager
def _named(column: str) -> Iterator[None]:
    """Inside this block, an error becomes one that names the column."""
    try:
        yield
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(
            f'random questions about "{column}" fail, so the model could not be calibrated ({reason}): '
            f"leave the column out with {exclude_option(column)}"
        ) from error
