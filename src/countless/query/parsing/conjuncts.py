"""The conjuncts of a clause: the filters that its outermost AND joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.query.parsing.parse import parse
from countless.query.parsing.sql import written


@dataclass(frozen=True)
class Conjunct:
    """A condition in SQL, and the columns it names, as it spells them."""

    sql: str
    columns: tuple[str, ...]


def parts(clause: str, schema: Schema | None = None) -> tuple[Conjunct, ...]:
    """The filters of ``clause``, without TRUE. Names lose their table, but keep a struct of the ``schema``.

    >>> for part in parts("a = 'x AND y' AND (t.b BETWEEN 1 AND 2 AND (c OR NOT d)) AND TRUE"):
    ...     print(part.sql, part.columns)
    a = 'x AND y' ('a',)
    b BETWEEN 1 AND 2 ('b',)
    (c OR NOT d) ('c', 'd')
    """
    condition = parse(clause, schema)
    for column in condition.find_all(exp.Column):
        for qualifier in ("table", "db", "catalog"):
            column.set(qualifier, None)
    conjunct_list = []
    for node in conjuncts(condition):
        if isinstance(node, exp.Boolean) and node.this:
            continue
        columns = tuple(dict.fromkeys(column.name for column in node.find_all(exp.Column)))
        sql = written(node)
        conjunct_list.append(Conjunct(f"({sql})" if isinstance(node, exp.Or) else sql, columns))
    return tuple(conjunct_list)


def together(conjunct_list: Iterable[Conjunct]) -> str:
    """The clause that joins all of them by AND.

    >>> together(parts("a = 1 AND b")), together(())
    ('a = 1 AND b', 'TRUE')
    """
    return " AND ".join(conjunct.sql for conjunct in conjunct_list) or "TRUE"


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a condition's outermost ANDs."""
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        for part in node.flatten():
            yield from conjuncts(part)
    else:
        yield node


def leaves_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The comparisons below the connectives, as the compiler descends to them."""
    if isinstance(node, exp.Paren | exp.Not) or (isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean)):
        yield from leaves_of(node.this)
    elif isinstance(node, exp.And | exp.Or):
        for part in node.flatten():
            yield from leaves_of(part)
    else:
        yield node
