"""Simple filters as the expressions that the parser makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

from sqlglot import exp

from countless.query.domains.comparisons import OPERATORS
from countless.query.domains.plain_comparison import BETWEEN, BOOLEAN, IN, IS_NULL, NUMBER, STRING, Constant
from countless.query.parameters import Clause
from countless.query.parsing.simple_filters import SimpleFilter
from countless.query.parsing.sql import read_condition


def clause_of(text: str, filters: Sequence[SimpleFilter]) -> Clause:
    """The conjunction of ``filters``, which is written as ``text``."""
    condition = reduce(_and, map(expression_of, filters))
    return Clause(text, condition, text, checked=True)


def expression_of(item: SimpleFilter) -> exp.Expr:
    """What the parser makes of a simple filter."""
    name, comparison = item.match["quoted"] or item.match["name"], item.comparison
    column = exp.Column(this=exp.Identifier(this=name, quoted=item.match["quoted"] is not None))
    values = [_value(constant) for constant in comparison.constants]
    expression: exp.Expr
    if comparison.operator == BETWEEN:
        expression = exp.Between(this=column, low=values[0], high=values[1])
    elif comparison.operator == IN:
        expression = exp.In(this=column, expressions=values)
    elif comparison.operator == IS_NULL:
        expression = exp.Is(this=column, expression=exp.Null())
    else:
        expression = OPERATORS[comparison.operator](this=column, expression=values[0])
    return exp.Not(this=expression) if item.negated else expression


def _and(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.And(this=left, expression=right)


def _value(constant: Constant) -> exp.Expr:
    kind, text = constant
    if kind == STRING:
        return exp.Literal(this=text, is_string=True)
    if kind == BOOLEAN:
        return exp.Boolean(this=text == "true")
    if kind == NUMBER:
        number = exp.Literal(this=text.removeprefix("-"), is_string=False)
        return exp.Neg(this=number) if text[0] == "-" else number
    cast = _cast(kind).copy()
    cast.set("this", exp.Literal(this=text, is_string=True))
    return cast


@lru_cache(maxsize=16)
def _cast(kind: str) -> exp.Expr:
    text = f"CAST('' AS {kind})"
    return read_condition(text, text)
