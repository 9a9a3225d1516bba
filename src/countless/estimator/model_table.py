"""The table of a model: opened as the fit read it, and checked for the model's columns and types."""

from __future__ import annotations

from typing import Any

from countless.data.columns.schema import Schema
from countless.data.columns.types import quote_identifier
from countless.data.encoding.recoding import are_alike, match_columns, other_type
from countless.data.sources.csv_files import wrong_separator
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.postgres import Loading
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.query.rewrites.derivation import derive


def open_table(table: Any, schema: Schema, loading: Loading | None = None) -> Source:
    """The table with the model's derived columns. A CSV file without options is read with the options of the fit.

    Raises:
        DataError: the table lacks a column of the model, or has it in another kind of type.
    """
    source = derive(Source.open(with_default_options(table, schema.csv), loading=loading), schema.derived)
    present = match_columns([name for name, _ in source.columns()], schema.names)
    if missing := [name for index, name in enumerate(schema.names) if index not in present]:
        hint = None if source.csv is None else wrong_separator(source)
        remedy = hint or "take the table it was fitted on"
        raise DataError(f"the table lacks the model's columns {', '.join(missing[:5])}: {remedy}")
    require_types(source, schema)
    return source


def require_types(source: Source, schema: Schema) -> None:
    """Raise an error if a column has another kind of type than in the model. Columns that are all NULL pass."""
    types = dict(source.columns())
    for index, name in match_columns(list(types), schema.names).items():
        kind = schema.columns[index].type
        if are_alike(types[name], kind):
            continue
        quoted = quote_identifier(name)
        if source.rows(f"SELECT 1 FROM {source.table} WHERE {quoted} IS NOT NULL LIMIT 1"):
            raise other_type(source, name, types[name], kind)
