"""Rewrites expressions that the model has as derived columns: ``lower(city) = 'oslo'`` is about ``city_lower``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from sqlglot import exp

from countless.data.columns.derived import Derived
from countless.data.columns.schema import Schema
from countless.query.parsing.parse import span_of
from countless.query.parsing.sql import read_condition, written


def with_derived(condition: exp.Expr, schema: Schema, clause: str) -> exp.Expr:
    """``condition`` with derived columns in place of their expressions; the same object if none is replaced.

    If a column has a code for each value, its codes say more than several derived columns do. So one expression of such
    a column is replaced, and only if the condition uses the column for nothing else.
    """
    columns_by_type = _expressions(schema.derived)
    if not any(type(node) in columns_by_type for node in condition.walk()):
        return condition
    rewritten, used_columns = _replaced(condition, schema, clause, ())
    mentioned = {schema.find(column.name) for column in rewritten.find_all(exp.Column)}
    bases = {column: schema.base_of(column) for column in used_columns}
    uses = Counter(bases.values())
    excluded = [column for column, base in bases.items() if base is not None and (base in mentioned or uses[base] > 1)]
    if excluded:
        rewritten, used_columns = _replaced(condition, schema, clause, excluded)
    return rewritten if used_columns else condition


def without_derived(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` with expressions in place of the derived columns that follow from other columns of the model."""

    def replaced(node: exp.Expr) -> exp.Expr:
        index = schema.find(node.name) if isinstance(node, exp.Column) else None
        derived_column = None if index is None else schema.following.get(index)
        return node if derived_column is None else exp.paren(read_condition(derived_column.sql, derived_column.sql))

    return condition.transform(replaced) if schema.following else condition


def _replaced(
    condition: exp.Expr, schema: Schema, clause: str, excluded: Collection[Derived]
) -> tuple[exp.Expr, set[Derived]]:
    """``condition`` with derived columns in place of their expressions, without those ``excluded``; and those used."""
    columns_by_type, used_columns = _expressions(schema.derived), set()

    def replaced(node: exp.Expr) -> exp.Expr:
        derived_column = columns_by_type[type(node)].get(_spelled(node)) if type(node) in columns_by_type else None
        if derived_column is None or derived_column in excluded:
            return node
        used_columns.add(derived_column)
        column = exp.column(derived_column.name, quoted=True)
        if (span := span_of(node, clause)) is not None:
            column.this.meta.update(start=span[0], end=span[1] - 1)
        return column

    return condition.transform(replaced), used_columns


@lru_cache(maxsize=64)
def _expressions(derived: tuple[Derived, ...]) -> dict[type[exp.Expr], dict[str, Derived]]:
    """The derived columns by the type and the SQL of their expressions, without those that only copy a column."""
    columns_by_type: dict[type[exp.Expr], dict[str, Derived]] = {}
    for column in derived:
        node = read_condition(column.sql, column.sql)
        if not isinstance(node, exp.Column):
            columns_by_type.setdefault(type(node), {}).setdefault(_spelled(node), column)
    return columns_by_type


def _spelled(node: exp.Expr) -> str:
    """The SQL of an expression: the same whatever its blanks, quotes of names and case of names are."""

    def plain(child: exp.Expr) -> exp.Expr:
        return exp.column(child.name.casefold(), quoted=True) if isinstance(child, exp.Column) else child

    return written(node.transform(plain))
