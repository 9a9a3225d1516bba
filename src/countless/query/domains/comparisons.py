"""Comparisons of a column with literals, read from sqlglot's expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from countless.query.domains.plain_comparison import (
    BETWEEN,
    BOOLEAN,
    IN,
    IS_NULL,
    NUMBER,
    STRING,
    Constant,
    PlainComparison,
)

# Each operator: its sign, its expression, the same with its sides swapped, and its function in Python.
_COMPARISONS: tuple[tuple[str, type[exp.Expr], type[exp.Expr], Callable[[Any, Any], Any]], ...] = (
    ("=", exp.EQ, exp.EQ, operator.eq),
    ("<>", exp.NEQ, exp.NEQ, operator.ne),
    ("<", exp.LT, exp.GT, operator.lt),
    ("<=", exp.LTE, exp.GTE, operator.le),
    (">", exp.GT, exp.LT, operator.gt),
    (">=", exp.GTE, exp.LTE, operator.ge),
)
OPERATORS = {sign: kind for sign, kind, _, _ in _COMPARISONS}
SIGNS = {kind: sign for sign, kind, _, _ in _COMPARISONS}
FLIPPED = {kind: swapped for _, kind, swapped, _ in _COMPARISONS}
FUNCTIONS = {kind: function for _, kind, _, function in _COMPARISONS}
CASTS = {
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
}


def is_null_test(predicate: exp.Expr) -> bool:
    """Whether ``predicate`` is a column's IS NULL."""
    return (
        isinstance(predicate, exp.Is)
        and isinstance(predicate.this, exp.Column)
        and isinstance(predicate.expression, exp.Null)
    )


def plain_comparison(predicate: exp.Expr) -> PlainComparison | None:
    """The operator and the literals of ``predicate``, if it compares a column with literals and nothing else."""
    if is_null_test(predicate):
        return PlainComparison(IS_NULL)
    kind, column = type(predicate), predicate.this
    if kind in FLIPPED:
        constant_side = predicate.expression
        if isinstance(constant_side, exp.Column):
            column, constant_side, kind = constant_side, column, FLIPPED[kind]
        sign, nodes = SIGNS[kind], [constant_side]
    elif kind is exp.Between and not predicate.args.get("symmetric"):
        sign, nodes = BETWEEN, [predicate.args["low"], predicate.args["high"]]
    elif kind is exp.In and not predicate.args.get("query"):
        sign, nodes = IN, predicate.expressions
    else:
        return None
    constants = [constant for node in nodes if (constant := constant_of(node)) is not None]
    if not isinstance(column, exp.Column) or not nodes or len(constants) < len(nodes):
        return None
    return PlainComparison(sign, tuple(constants))


def constant_of(node: exp.Expr) -> Constant | None:
    """The literal that ``node`` is, if it is one."""
    if type(node) is exp.Cast:
        kind, literal = CASTS.get(node.to.this), node.this
        if kind is None or not isinstance(literal, exp.Literal) or not (literal.is_string or kind == "DOUBLE"):
            return None
        return Constant(kind, literal.this)
    if isinstance(node, exp.Boolean):
        return Constant(BOOLEAN, "true" if node.this else "false")
    sign, literal = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if not isinstance(literal, exp.Literal) or (sign and literal.is_string):
        return None
    return Constant(STRING if literal.is_string else NUMBER, sign + literal.this)
