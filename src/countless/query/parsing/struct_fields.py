"""Struct fields in a clause: ``address.city`` becomes one column.

In a model, the name of a field is one name with dots. A name in a clause may also have a table before it: ``t.age``. So
the longest suffix of the name that the model has is the column, and what stands before it is the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.columns.structs import is_struct
from countless.data.columns.types import quote_identifier


def merge_struct_fields(tree: exp.Expr, schema: Schema) -> exp.Expr:
    """``tree`` in which every field of a struct is one column, at the same position of the text.

    >>> from sqlglot import parse_one
    >>> from countless.data.columns.schema import Column
    >>> schema = Schema(9, (Column("address.city", "VARCHAR", ("Oslo",), False),))
    >>> merge_struct_fields(parse_one("address.city = 'Oslo' AND t.age > 3"), schema).sql()
    '"address.city" = \\'Oslo\\' AND t.age > 3'
    """
    for node in list(tree.find_all(exp.Column, exp.Dot)):
        assert isinstance(node, exp.Column | exp.Dot)
        parts = node.parts
        if isinstance(node.parent, exp.Dot) or not all(isinstance(part, exp.Identifier) for part in parts):
            continue
        name = field_name(schema, [part.name for part in parts])
        if name is None:
            continue
        joined = exp.to_identifier(name, quoted=True)
        if "start" in parts[0].meta and "end" in parts[-1].meta:
            joined.meta.update(parts[-1].meta | {"start": parts[0].meta["start"]})
        column = exp.column(joined)
        if node.parent is not None:
            node.replace(column)
        if node is tree:
            tree = column
    return tree


def field_name(schema: Schema, parts: Sequence[str]) -> str | None:
    """The field that ``parts`` name, with or without a table before it; None if they are a table and its column.

    For a field of a struct that was left out it is the name of the struct, for the error about it. For a field that no
    struct has it is the whole name, unless a column has the name of its last part.
    """
    paths = [parts[first:] for first in range(len(parts) - 1)]
    for path in paths:
        if _is_column(schema, name := ".".join(path)):
            return name
    is_plain_column = _is_column(schema, parts[-1])
    for path in paths:
        for end in range(1, len(path)):
            struct = schema.find_left_out(".".join(path[:end]))
            if (
                struct is not None
                and is_struct(struct.type)
                and (not is_plain_column or _has_field(struct.type, path[end]))
            ):
                return struct.name
    if not is_plain_column:
        for path in paths:
            if fields_of(schema, path[0]):
                return ".".join(path)
    return None


def fields_of(schema: Schema, struct: str) -> list[str]:
    """The columns of the model that are fields of ``struct``."""
    return [name for name in schema.names if name.casefold().startswith(f"{struct.casefold()}.")]


def structs_with(schema: Schema, field: str) -> list[str]:
    """The columns of the model that are a ``field`` of this name in any struct."""
    return [name for name in schema.names if name.casefold().endswith(f".{field.casefold()}")]


def quote_fields(text: str, first: int, nodes: Iterable[exp.Expr]) -> str:
    """``text``, which begins at ``first`` in the statement of ``nodes``, with each joined field as one quoted name."""
    spans = {
        (column.this.meta["start"], column.this.meta["end"]): column.name
        for node in nodes
        for column in node.find_all(exp.Column)
        if "." in column.name and "start" in column.this.meta
    }
    for (start, end), name in sorted(spans.items(), reverse=True):
        text = text[: start - first] + quote_identifier(name) + text[end + 1 - first :]
    return text


def _has_field(duckdb_type: str, field: str) -> bool:
    """Whether a struct has a field of this name, or a struct within it.

    >>> _has_field("STRUCT(lat DOUBLE, lon DOUBLE)", "Lon"), _has_field("STRUCT(lat DOUBLE)", "double")
    (True, False)
    """
    return re.search(rf'[( ]"?{re.escape(field)}"? ', duckdb_type, re.IGNORECASE) is not None


def _is_column(schema: Schema, name: str) -> bool:
    return schema.find(name) is not None or schema.find_left_out(name) is not None
