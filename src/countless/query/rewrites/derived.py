"""Expressions in a clause that a derived column of the model holds: ``lower(city) = 'oslo'`` asks ``city_lower``."""

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

    If all that is asked of a column with a code for each value can be said of these values, that tells more than
    several columns: of such a column one expression is replaced, and only if nothing else is asked of it.
    """
    known = _expressions(schema.derived)
    if not any(type(node) in known for node in condition.walk()):
        return condition
    found, used = _replaced(condition, schema, clause, ())
    asked = {schema.find(column.name) for column in found.find_all(exp.Column)}
    bases = {item: schema.base_of(item) for item in used}
    times = Counter(bases.values())
    kept = [item for item, base in bases.items() if base is not None and (base in asked or times[base] > 1)]
    if kept:
        found, used = _replaced(condition, schema, clause, kept)
    return found if used else condition


def without_derived(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` with expressions in place of the derived columns that follow from other columns of the model."""

    def replaced(node: exp.Expr) -> exp.Expr:
        index = schema.find(node.name) if isinstance(node, exp.Column) else None
        item = None if index is None else schema.following.get(index)
        return node if item is None else exp.paren(read_condition(item.sql, item.sql))

    return condition.transform(replaced) if schema.following else condition


def _replaced(
    condition: exp.Expr, schema: Schema, clause: str, kept: Collection[Derived]
) -> tuple[exp.Expr, set[Derived]]:
    """``condition`` with derived columns in place of their expressions, but those ``kept``; and which are used."""
    known, used = _expressions(schema.derived), set()

    def replaced(node: exp.Expr) -> exp.Expr:
        item = known[type(node)].get(_spelled(node)) if type(node) in known else None
        if item is None or item in kept:
            return node
        used.add(item)
        column = exp.column(item.name, quoted=True)
        if (span := span_of(node, clause)) is not None:
            column.this.meta.update(start=span[0], end=span[1] - 1)
        return column

    return condition.transform(replaced), used


@lru_cache(maxsize=64)
def _expressions(derived: tuple[Derived, ...]) -> dict[type[exp.Expr], dict[str, Derived]]:
    """Each derived column by its expression, and these by their kind. A copy of a column is none."""
    found: dict[type[exp.Expr], dict[str, Derived]] = {}
    for item in derived:
        node = read_condition(item.sql, item.sql)
        if not isinstance(node, exp.Column):
            found.setdefault(type(node), {}).setdefault(_spelled(node), item)
    return found


def _spelled(node: exp.Expr) -> str:
    """The same text for all ways to write an expression that differ in blanks, quotes of names, or case of names."""

    def plain(item: exp.Expr) -> exp.Expr:
        return exp.column(item.name.casefold(), quoted=True) if isinstance(item, exp.Column) else item

    return written(node.transform(plain))
