"""Resolution of the column names in a clause, and errors for unknown names."""

from __future__ import annotations

import difflib

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.errors import ColumnLeftOutError, UnknownColumnError
from countless.query.parsing.parse import span_of
from countless.query.parsing.struct_fields import fields_of, structs_with

MOST_LISTED = 20
HIDDEN = "hidden"  # in a node's meta: the index of the hidden column of the model that it is
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Like, exp.ILike)
CLOSE = 0.66  # least similarity, of 1, of a name that is suggested for an unknown one


def resolve(schema: Schema, column: exp.Column, clause: str | None) -> int:
    """The index of ``column`` among the table's columns.

    ``clause`` is the text that it stands in, if there is one: an error points into it.
    """
    if (hidden := column.meta.get(HIDDEN)) is not None:
        return int(hidden)
    index = schema.find(column.name)
    if index is not None:
        return index
    span = span_of(column.this, clause)
    left_out = schema.find_left_out(column.name)
    if left_out is not None:
        raise ColumnLeftOutError(
            f'the model does not hold the column "{left_out.name}": {left_out.reason}', clause, span
        )
    close = difflib.get_close_matches(column.name.casefold(), [name.casefold() for name in schema.names], 1, CLOSE)
    match = next((name for name in schema.names if close and name.casefold() == close[0]), None)
    fields = fields_of(schema, column.name)
    match = match or next(iter(structs_with(schema, column.name)), None)
    if fields:
        hint = f"it is a struct: name one of its fields, {_listed(tuple(fields))}"
    elif match:
        hint = f'did you mean "{match}"?'
    elif (column.this.quoted and clause is not None) or _is_compared(schema, column):
        hint = f"text is written in single quotes, '{column.name}'; the columns are {_listed(schema.names)}"
    else:
        hint = f"the columns are {_listed(schema.names)}"
    raise UnknownColumnError(f'unknown column "{column.name}": {hint}', clause, span)


def _is_compared(schema: Schema, column: exp.Column) -> bool:
    """Whether ``column`` stands in place of a value, as in ``city = Paris``: it is compared with a column of the table.

    >>> from countless.query.parsing.parse import parse
    >>> schema = Schema(2, (), ())
    >>> [_is_compared(schema, name) for name in parse("city = Paris").find_all(exp.Column)]
    [False, False]
    """
    compared = column.parent
    while isinstance(compared, exp.Paren | exp.Tuple):
        compared = compared.parent
    first = compared.this if isinstance(compared, COMPARISONS) else None
    return isinstance(first, exp.Column) and first is not column and schema.find(first.name) is not None


def index_of_name(schema: Schema, name: str) -> int:
    """The index of the column called ``name``."""
    return resolve(schema, exp.column(name, quoted=True), None)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
