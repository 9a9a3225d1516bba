"""Parses and computes derived columns, such as ``lower(city) AS city_lower``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import duckdb
from sqlglot import exp

from countless.data.columns.derived import Derived, computable
from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.errors import ModelFileError, OptionError, QueryError, QueryTooLargeError, UnsupportedQueryError
from countless.query.parsing.parse import refuse_unsupported
from countless.query.parsing.sql import read_statement, tokens_of, written
from countless.query.sandbox.functions import check_functions
from countless.query.sandbox.process import borrowed

EXAMPLE = "write an expression and its name, such as lower(city) AS city_lower"
TOO_MUCH = "takes too much time or memory: fit the model with a simpler expression"
TRIED_ROWS = 1_000
ROW = "__place"
CLOCK = frozenset(["now", "today", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"])


def read_derived(texts: Iterable[str]) -> tuple[Derived, ...]:
    """Parse ``texts`` as derived columns; raises an :class:`OptionError` about the first that is none.

    >>> read_derived(["lower(address.city) AS low"])
    (Derived(name='low', sql='LOWER("address.city")', columns=('address.city',)),)
    """
    derived = []
    for text in texts:
        try:
            first = _read(text)
            # Parse the written form once more, as it will be when the model file is read.
            derived.append(_read(f'{first.sql} AS "derived"', first.name))
        except QueryError as error:
            raise OptionError(f"{{derive}} {' '.join(text.split())}: {error.message}") from None
    return tuple(derived)


def check_stored(schema: Schema) -> None:
    """Refuse a model file with a derived column that a fit would refuse: its SQL would run on tables."""
    for column in schema.derived:
        try:
            is_valid = _read(f'{column.sql} AS "derived"', column.name) == column
        except QueryError:
            is_valid = False
        if not is_valid or schema.find(column.name) is None:
            raise ModelFileError(f'the schema is damaged (the derived column "{column.name}"): fit the model again')


def derive(source: Source, derived: Sequence[Derived]) -> Source:
    """The table with its ``derived`` columns.

    Each is first computed on some rows in the sandbox, because SQL from a model file may take too much time or memory.
    """
    types = dict(source.columns()) if derived else {}
    for column in computable(derived, types):
        input_names = {name.casefold() for name in column.columns}
        inputs = {name: kind for name, kind in types.items() if name.casefold() in input_names}
        texts = ", ".join(f"CAST({quote_identifier(name)} AS VARCHAR)" for name in inputs)
        sample = source.rows(f"SELECT {texts} FROM {source.table} USING SAMPLE {TRIED_ROWS} ROWS (reservoir, 0)")
        values = [list(column_values) for column_values in zip(*sample, strict=True)] or [[] for _ in inputs]
        try:
            _computed(column.sql, None, [(*item, texts) for item, texts in zip(inputs.items(), values, strict=True)])
        except QueryTooLargeError:
            raise QueryTooLargeError(f'the derived column "{column.name}" {TOO_MUCH}') from None
        except (QueryError, duckdb.Error):
            continue  # the error is raised when the table is read
    return source.with_derived(derived)


def recompute(schema: Schema, columns: list[list[str | None]]) -> None:
    """Compute the derived columns of rows from their other columns. ``columns`` are values as DuckDB prints them.

    A column that cannot be computed, such as a cast of a value that the model made up, stays as it is.
    """
    for index, derived_column in schema.following.items():
        inputs = [
            (schema.names[input_index], schema.columns[input_index].type, columns[input_index])
            for input_index in map(schema.find, derived_column.columns)
            if input_index is not None
        ]
        with suppress(QueryError, duckdb.Error):
            columns[index] = _computed(derived_column.sql, schema.columns[index].type, inputs)


def _computed(sql: str, kind: str | None, inputs: Sequence[tuple[str, str, list[str | None]]]) -> list[str | None]:
    """The value of an expression in each row, printed as type ``kind``; without ``kind`` it is only computed.

    ``inputs`` have the name and the type of each column, and its values as DuckDB prints them.
    """
    texts = ", ".join(f"unnest($t{index}::VARCHAR[]) AS t{index}" for index in range(len(inputs)))
    values = ", ".join(
        f"CAST(t{index} AS {column_type}) AS {quote_identifier(name)}"
        for index, (name, column_type, _) in enumerate(inputs)
    )
    value = f"({sql})" if kind is None else f"CAST(({sql}) AS {kind})"
    unnested = f"SELECT unnest(range($rows::BIGINT)) AS {ROW}, {texts}"
    statement = (
        f"SELECT CAST({value} AS VARCHAR) FROM (SELECT {ROW}, {values} FROM ({unnested})) ORDER BY {ROW}"
        if kind is not None
        else f"SELECT bit_xor(hash({value})) FROM (SELECT {values} FROM ({unnested}))"
    )
    parameters = {f"t{index}": column_values for index, (_, _, column_values) in enumerate(inputs)}
    with borrowed() as sandbox:
        result_rows = sandbox.run_user_sql(statement, sql, {"rows": len(inputs[0][2]), **parameters})
    return [row[0] for row in result_rows]


def _read(text: str, name: str | None = None) -> Derived:
    """Parse an expression with its alias, or with ``name`` instead of it."""
    statement = read_statement(f"SELECT {text}")
    selected: Sequence[exp.Expr] = statement.expressions if isinstance(statement, exp.Select) else ()
    other_clauses = [key for key, value in statement.args.items() if value and key != "expressions"]
    if len(selected) != 1 or other_clauses:
        raise UnsupportedQueryError(f"this is not a single expression: {EXAMPLE}")
    alias = selected[0]
    if not isinstance(alias, exp.Alias) or not alias.alias:
        raise UnsupportedQueryError(f"it has no name: {EXAMPLE}")
    expression = _with_whole_names(alias.this)
    refuse_unsupported(expression, text, parameters=False)
    check_functions(text)
    if any(token.text.lower() in CLOCK for token in tokens_of(written(expression))):
        raise UnsupportedQueryError("the time of day is not a value of the row: compare with a literal instead")
    columns = dict.fromkeys(column.name for column in expression.find_all(exp.Column))
    if not columns:
        raise UnsupportedQueryError(f"it names no column: {EXAMPLE}")
    return Derived(name or alias.alias, written(expression), tuple(columns))


def _with_whole_names(expression: exp.Expr) -> exp.Expr:
    """``expression`` in which a field of a struct is one column, as in the flattened table: ``address.city``."""

    def whole(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column | exp.Dot) or not all(
            isinstance(part, exp.Identifier) for part in node.parts
        ):
            return node
        return exp.column(".".join(part.name for part in node.parts), quoted=True) if len(node.parts) > 1 else node

    return expression.transform(whole)
