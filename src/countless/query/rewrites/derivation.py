"""Reading of ``lower(city) AS city_lower``: a derived column, under the rules for what a clause may compute."""

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
PLACE = "__place"
CLOCK = frozenset(["now", "today", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"])


def read_derived(texts: Iterable[str]) -> tuple[Derived, ...]:
    """The derived columns that ``texts`` say; an :class:`OptionError` about the first that says none.

    >>> read_derived(["lower(address.city) AS low"])
    (Derived(name='low', sql='LOWER("address.city")', columns=('address.city',)),)
    """
    found = []
    for text in texts:
        try:
            first = _read(text)
            found.append(_read(f'{first.sql} AS "derived"', first.name))  # what is stored is read again with the model
        except QueryError as error:
            raise OptionError(f"{{derive}} {' '.join(text.split())}: {error.message}") from None
    return tuple(found)


def check_stored(schema: Schema) -> None:
    """Refuse a model file whose derived columns are none that a fit would take: their SQL is run on tables."""
    for item in schema.derived:
        try:
            known = _read(f'{item.sql} AS "derived"', item.name) == item
        except QueryError:
            known = False
        if not known or schema.find(item.name) is None:
            raise ModelFileError(f'the schema is damaged (the derived column "{item.name}"): fit the model again')


def derive(source: Source, derived: Sequence[Derived]) -> Source:
    """The table with its ``derived`` columns.

    Each is first computed of some rows in the sandbox: SQL of a model file is not trusted to be modest.
    """
    types = dict(source.columns()) if derived else {}
    for item in computable(derived, types):
        inputs = {name: types[name] for name in types if name.casefold() in {own.casefold() for own in item.columns}}
        texts = ", ".join(f"CAST({quote_identifier(name)} AS VARCHAR)" for name in inputs)
        some = source.rows(f"SELECT {texts} FROM {source.table} USING SAMPLE {TRIED_ROWS} ROWS (reservoir, 0)")
        columns = [list(own) for own in zip(*some, strict=True)] or [[] for _ in inputs]
        try:
            _computed(item.sql, None, [(*own, texts) for own, texts in zip(inputs.items(), columns, strict=True)])
        except QueryTooLargeError:
            raise QueryTooLargeError(f'the derived column "{item.name}" {TOO_MUCH}') from None
        except (QueryError, duckdb.Error):
            continue  # the table says what is wrong
    return source.with_derived(derived)


def recompute(schema: Schema, columns: list[list[str | None]]) -> None:
    """Compute the derived columns of some rows from the others. ``columns`` are values as DuckDB prints them.

    What cannot be computed, as a cast of a value that the model made up, stays as it was.
    """
    for index, item in schema.following.items():
        places = [place for place in map(schema.find, item.columns) if place is not None]
        inputs = [(schema.names[place], schema.columns[place].type, columns[place]) for place in places]
        with suppress(QueryError, duckdb.Error):
            columns[index] = _computed(item.sql, schema.columns[index].type, inputs)


def _computed(sql: str, kind: str | None, inputs: Sequence[tuple[str, str, list[str | None]]]) -> list[str | None]:
    """The value of an expression in each row, printed as a ``kind``; without one, it is only computed.

    ``inputs`` have the name and the type of each column, and its values as DuckDB prints them.
    """
    texts = ", ".join(f"unnest($t{place}::VARCHAR[]) AS t{place}" for place in range(len(inputs)))
    values = ", ".join(
        f"CAST(t{place} AS {own}) AS {quote_identifier(name)}" for place, (name, own, _) in enumerate(inputs)
    )
    value = f"({sql})" if kind is None else f"CAST(({sql}) AS {kind})"
    listed = f"SELECT unnest(range($rows::BIGINT)) AS {PLACE}, {texts}"
    statement = (
        f"SELECT CAST({value} AS VARCHAR) FROM (SELECT {PLACE}, {values} FROM ({listed})) ORDER BY {PLACE}"
        if kind is not None
        else f"SELECT bit_xor(hash({value})) FROM (SELECT {values} FROM ({listed}))"
    )
    parameters = {f"t{place}": own for place, (_, _, own) in enumerate(inputs)}
    with borrowed() as sandbox:
        found = sandbox.ask(statement, sql, {"rows": len(inputs[0][2]), **parameters})
    return [row[0] for row in found]


def _read(text: str, name: str | None = None) -> Derived:
    """One expression and its name, which is ``name`` if that is given."""
    statement = read_statement(f"SELECT {text}")
    selected: Sequence[exp.Expr] = statement.expressions if isinstance(statement, exp.Select) else ()
    others = [key for key, value in statement.args.items() if value and key != "expressions"]
    if len(selected) != 1 or others:
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
