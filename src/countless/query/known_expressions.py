"""Comparisons of an expression with integers, such as ``hour(ts) = 3``: the expression is compiled and computed once.

The compiler compiles the first comparison of an expression by each operator. Later ones, with other numbers, only
compare the values that were computed then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlglot import exp

from countless.data.columns.schema import Column
from countless.data.columns.types import INTEGERS
from countless.query.boxes import filter_of
from countless.query.domains.comparisons import plain_comparison
from countless.query.domains.domain_evaluation import WholeNumbers, compared_expression
from countless.query.domains.plain_comparison import BETWEEN, IN
from countless.query.domains.truth import Observed
from countless.query.parsing.names import resolve
from countless.region import Box, Region

if TYPE_CHECKING:
    from countless.query.compile import Compiler

MOST_EXPRESSIONS = 256  # pairs of an expression and an operator that are cached
_NUMBER = r"-?\d{1,9}"
COMPARISON = re.compile(
    rf"""(?P<expression> .*[^\s<>!=] ) (?:
        \s*(?P<operator>=|<>|!=|<=|>=|<|>)\s*(?P<number>{_NUMBER})
      | \s+BETWEEN\s+(?P<low>{_NUMBER})\s+AND\s+(?P<high>{_NUMBER})
      | \s+IN\s*\(\s*(?P<list>{_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*\) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)


class _ComparedText(NamedTuple):
    """The text of a comparison: an expression, an operator and integers."""

    expression: str
    operator: str
    numbers: list[int]

    @classmethod
    def of(cls, text: str) -> _ComparedText | None:
        """Parse ``text``; None if it does not look like such a comparison."""
        match = COMPARISON.fullmatch(text)
        if match is None:
            return None
        expression, operator, number, low, high, number_list = match.group(
            "expression", "operator", "number", "low", "high", "list"
        )
        if operator:
            return cls(expression, "<>" if operator == "!=" else operator, [int(number)])
        if low:
            return cls(expression, BETWEEN, [int(low), int(high)])
        return cls(expression, IN, list(map(int, number_list.split(","))))


class _CachedExpression(NamedTuple):
    """The values of an expression for each code of its column, and for each evidence value if the column has a grid."""

    column_index: int
    values: WholeNumbers
    evidence_values: WholeNumbers | None


class KnownExpressions:
    """A cache of the expressions that a compiler has compiled. Safe to share by threads."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._cache: dict[tuple[str, str], _CachedExpression | None] = {}

    def region(self, text: str) -> tuple[Region, bool] | None:
        """The region of a clause and whether it is certain, as the compiler finds them; None if it must be compiled."""
        comparison = _ComparedText.of(text)
        expression = None if comparison is None else self._cache.get(comparison[:2])
        if comparison is None or expression is None:
            return None
        schema, index = self._compiler.schema, expression.column_index
        truth = expression.values.truth(comparison.operator, comparison.numbers)
        if expression.evidence_values is None:
            if truth.true.all():
                return Region((Box(),)), True
            return Region((Box((filter_of(schema, index, truth.true),)),) if truth.true.any() else ()), True
        line = self._compiler.lines.line(index)
        assert line is not None
        selected = line.knot_atoms.by_knots(truth).true
        observed = Observed(selected, expression.evidence_values.truth(comparison.operator, comparison.numbers).true)
        if observed.all():
            return Region((Box(),)), False
        grid_filter = filter_of(schema, index, line.knot_atoms.weights(selected), observed.seen)
        return Region((Box((grid_filter,)),) if observed.any() else ()), False

    def learn(self, text: str) -> None:
        """Cache the expression of a clause that the compiler has compiled, if it is compared with integers."""
        comparison = _ComparedText.of(text)
        if comparison is None or comparison[:2] in self._cache:
            return
        while len(self._cache) >= MOST_EXPRESSIONS:
            self._cache.pop(next(iter(self._cache)), None)
        self._cache[comparison[:2]] = self._read(text, comparison)

    def _read(self, text: str, comparison: _ComparedText) -> _CachedExpression | None:
        """Compute the compared expression; None unless it is about one column and its values are integers."""
        compiler, schema = self._compiler, self._compiler.schema
        condition = compiler.rewritten(compiler.read(text))
        columns = {resolve(schema, column, None) for column in condition.find_all(exp.Column)}
        if len(columns) != 1:
            return None
        (index,) = columns
        column = schema.column(index)
        if column.is_text or column.name in schema.uuids or (column.grid is not None and column.grid.unique):
            return None
        plain, parsed = plain_comparison(condition), compared_expression(condition)
        if plain is not None:  # with a hidden column
            numbers = [constant.text for constant in plain.constants]
            values = _whole_numbers(column)
            is_same = (plain.operator, numbers) == (comparison.operator, list(map(str, comparison.numbers)))
            return _CachedExpression(index, values, None) if is_same and values is not None else None
        if parsed is None or parsed[1:] != (comparison.operator, comparison.numbers):
            return None
        values, evidence_values = compiler.domain_tables.whole_numbers(index, parsed[0]), None
        if column.grid is not None:
            evidence_values = None if compiler.evidence is None else compiler.evidence.whole_numbers(index, parsed[0])
            if evidence_values is None or compiler.lines.ranges(index, condition) is not None:
                return None
        return None if values is None else _CachedExpression(index, values, evidence_values)


def _whole_numbers(column: Column) -> WholeNumbers | None:
    """The values of a column, if they are integers and it has no grid."""
    if column.type not in INTEGERS or column.grid is not None:
        return None
    numbers = [*map(int, column.values), *([0] if column.has_null else [])]
    is_known = np.arange(len(numbers)) < len(column.values)
    return WholeNumbers(np.array(numbers, dtype=np.int64), is_known)
