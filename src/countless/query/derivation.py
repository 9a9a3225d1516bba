"""Reading of ``lower(city) AS city_lower``: a derived column, under the rules for what a clause may compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from countless.data.columns.derived import Derived
from countless.data.columns.schema import Schema
from countless.errors import ModelFileError, OptionError, QueryError, UnsupportedQueryError
from countless.query.parse import refuse_unsupported
from countless.query.sandbox.functions import check_functions
from countless.query.sql import read_statement, tokens_of, written

EXAMPLE = "write an expression and its name, such as lower(city) AS city_lower"
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


def _read(text: str, name: str | None = None) -> Derived:
    """One expression and its name, which is ``name`` if that is given."""
    statement = read_statement(f"SELECT {text}")
    selected: Sequence[exp.Expr] = statement.expressions if isinstance(statement, exp.Select) else ()
    others = [key for key, value in statement.args.items() if value and key != "expressions"]
    if len(selected) != 1 or others:
        raise UnsupportedQueryError(f"this is not one expression: {EXAMPLE}")
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
