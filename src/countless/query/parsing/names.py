"""Resolution of the column names in a clause, and errors for unknown names."""

from __future__ import annotations

import difflib

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.errors import ColumnLeftOutError, UnknownColumnError
from countless.query.parsing.fields import fields_of, structs_with
from countless.query.parsing.parse import span_of

MOST_LISTED = 20
HIDDEN = "hidden"  # marks, among what is known of a node, a hidden column of the model, by its index
CLOSE = 0.66  # how much two names have in common, of 1, if one may be meant by the other


def resolve(schema: Schema, column: exp.Column, clause: str | None) -> int:
    """The index of ``column`` among the table's columns.

    ``clause`` is the text that it stands in, if there is one, for the error that points at the spot.
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
    elif column.this.quoted and clause is not None:
        hint = f"text is written in single quotes, '{column.name}'; the columns are {_listed(schema.names)}"
    else:
        hint = f"the columns are {_listed(schema.names)}"
    raise UnknownColumnError(f'unknown column "{column.name}": {hint}', clause, span)


def index_of_name(schema: Schema, name: str) -> int:
    """The place of the column called ``name``."""
    return resolve(schema, exp.column(name, quoted=True), None)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
