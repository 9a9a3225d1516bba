"""Conditions on one column for the rules: always true, always false, and ranges between values of real rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.data.columns.schema import Column
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import INTEGERS, TEXT, quote_identifier, sql_literal
from countless.query.grids.scale import scale_of

MOST_LISTED = 50  # a condition lists all values of a column with at most so many


def everything(column: Column | TextColumn, rng: np.random.Generator) -> str:
    """A filter that keeps every row, in one of many ways."""
    name = quote_identifier(column.name)
    conditions = [f"({name} IS NULL OR {name} IS NOT NULL)"]
    if isinstance(column, TextColumn):
        conditions.append(_or_null(f"{name} LIKE '%'", column))
    elif column.values:
        low, high = (sql_literal(value, column.type) for value in (column.values[0], column.values[-1]))
        conditions.append(_or_null(f"{name} >= {low}", column))
        conditions.append(_or_null(f"{name} <= {high}", column))
        conditions.append(_or_null(f"{name} BETWEEN {low} AND {high}", column))
        conditions.append(_or_null(f"NOT ({name} < {low})", column))
        if len(column.values) > 1:
            conditions.append(_or_null(f"NOT ({name} = {low} AND {name} = {high})", column))
        if column.grid is None and len(column.values) <= MOST_LISTED:
            listed = ", ".join(sql_literal(value, column.type) for value in column.values)
            conditions.append(_or_null(f"{name} IN ({listed})", column))
    return str(rng.choice(conditions))


def nothing(column: Column | TextColumn, rng: np.random.Generator) -> str:
    """A filter that keeps no row, in one of many ways."""
    name = quote_identifier(column.name)
    conditions = [f"{name} IS NULL AND {name} IS NOT NULL"]
    if not column.has_null:
        conditions.append(f"{name} IS NULL")
    if isinstance(column, TextColumn):
        conditions.append(f"{name} = 'a' AND {name} = 'b'")
    elif column.values:
        low, high = (sql_literal(value, column.type) for value in (column.values[0], column.values[-1]))
        conditions.append(f"{name} < {low}")
        conditions.append(f"{name} > {high}")
        conditions.append(f"{name} IS NULL AND {name} = {low}")
        conditions.append(f"{name} > {low} AND {name} < {low}")
        if len(column.values) > 1:
            conditions.append(f"{name} = {low} AND {name} = {high}")
            conditions.append(f"{name} BETWEEN {high} AND {low}")
        missing = _missing(column)
        if missing is not None:
            conditions.append(f"{name} = {sql_literal(missing, column.type)}")
    return str(rng.choice(conditions))


def in_order(column: Column, values: Sequence[str | None]) -> list[str]:
    """The distinct values that are not NULL, in the column's order."""
    scale = scale_of(column.type)
    distinct = {value for value in values if value is not None}
    return sorted(distinct, key=lambda value: scale.read(column.type, value))


def _or_null(condition: str, column: Column | TextColumn) -> str:
    """The condition, or NULL where the column has any."""
    return f"({condition} OR {quote_identifier(column.name)} IS NULL)" if column.has_null else condition


def _missing(column: Column) -> str | None:
    """A value that the column does not have; None if its type does not allow to make one up."""
    if column.type in INTEGERS:
        return str(int(column.values[-1]) + 1)
    return f"{column.values[-1]}~" if column.type == TEXT else None
