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
    """The filters of ``clause``, in turn; TRUE is none. Names lose their table, but not a struct of the ``schema``.

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
    found = []
    for node in conjuncts(condition):
        if isinstance(node, exp.Boolean) and node.this:
            continue
        columns = tuple(dict.fromkeys(column.name for column in node.find_all(exp.Column)))
        sql = written(node)
        found.append(Conjunct(f"({sql})" if isinstance(node, exp.Or) else sql, columns))
    return tuple(found)


def together(found: Iterable[Conjunct]) -> str:
    """The clause that asks for all of them.

    >>> together(parts("a = 1 AND b")), together(())
    ('a = 1 AND b', 'TRUE')
    """
    return " AND ".join(part.sql for part in found) or "TRUE"


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a condition asks all of."""
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        for part in node.flatten():
            yield from conjuncts(part)
    else:
        yield node


def leaves_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The comparisons below the connectives, as the compiler finds them."""
    if isinstance(node, exp.Paren | exp.Not) or (isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean)):
        yield from leaves_of(node.this)
    elif isinstance(node, exp.And | exp.Or):
        for part in node.flatten():
            yield from leaves_of(part)
    else:
        yield node
