"""Comparisons of an expression with whole numbers, such as ``hour(ts) = 3``: the expression is read and computed once.

The compiler reads the first comparison of an expression by each operator. The next ones, with other numbers, only look
at the values that it has computed.
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

MOST_KNOWN = 256  # expressions, each by one operator
_NUMBER = r"-?\d{1,9}"
COMPARISON = re.compile(
    rf"""(?P<expression> .*[^\s<>!=] ) (?:
        \s*(?P<operator>=|<>|!=|<=|>=|<|>)\s*(?P<number>{_NUMBER})
      | \s+BETWEEN\s+(?P<low>{_NUMBER})\s+AND\s+(?P<high>{_NUMBER})
      | \s+IN\s*\(\s*(?P<list>{_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*\) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)


class _ComparedText(NamedTuple):
    """A clause as text: an expression, an operator and whole numbers."""

    expression: str
    operator: str
    numbers: list[int]

    @classmethod
    def of(cls, text: str) -> _ComparedText | None:
        """``text`` as such a comparison, if it looks like one."""
        match = COMPARISON.fullmatch(text)
        if match is None:
            return None
        expression, operator, number, low, high, several = match.group(
            "expression", "operator", "number", "low", "high", "list"
        )
        if operator:
            return cls(expression, "<>" if operator == "!=" else operator, [int(number)])
        if low:
            return cls(expression, BETWEEN, [int(low), int(high)])
        return cls(expression, IN, list(map(int, several.split(","))))


class _KnownExpression(NamedTuple):
    """The values of an expression of a column, for each of its codes, and among the evidence rows if it has a grid."""

    column_index: int
    values: WholeNumbers
    seen: WholeNumbers | None


class KnownExpressions:
    """The expressions that a compiler has read. Safe to share by threads."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._known: dict[tuple[str, str], _KnownExpression | None] = {}

    def region(self, text: str) -> tuple[Region, bool] | None:
        """The region of a clause, and whether it is certain, as the compiler has them; None if it must be compiled."""
        compared = _ComparedText.of(text)
        known = None if compared is None else self._known.get(compared[:2])
        if compared is None or known is None:
            return None
        schema, index = self._compiler.schema, known.column_index
        truth = known.values.truth(compared.operator, compared.numbers)
        if known.seen is None:
            if truth.true.all():
                return Region((Box(),)), True
            return Region((Box((filter_of(schema, index, truth.true),)),) if truth.true.any() else ()), True
        line = self._compiler.lines.line(index)
        assert line is not None
        chosen = line.knot_atoms.by_knots(truth).true
        both = Observed(chosen, known.seen.truth(compared.operator, compared.numbers).true)
        if both.all():
            return Region((Box(),)), False
        item = filter_of(schema, index, line.knot_atoms.weights(chosen), both.seen)
        return Region((Box((item,)),) if both.any() else ()), False

    def learn(self, text: str) -> None:
        """Remember the expression of a clause that the compiler has read, if it is compared with whole numbers."""
        compared = _ComparedText.of(text)
        if compared is None or compared[:2] in self._known:
            return
        while len(self._known) >= MOST_KNOWN:
            self._known.pop(next(iter(self._known)), None)
        self._known[compared[:2]] = self._read(text, compared)

    def _read(self, text: str, compared: _ComparedText) -> _KnownExpression | None:
        """What the text compares, as the parser has it; None if that is no expression of one column, or no number."""
        compiler, schema = self._compiler, self._compiler.schema
        condition = compiler.rewritten(compiler.read(text))
        columns = {resolve(schema, column, None) for column in condition.find_all(exp.Column)}
        if len(columns) != 1:
            return None
        (index,) = columns
        column = schema.column(index)
        if column.is_text or column.name in schema.uuids or (column.grid is not None and column.grid.unique):
            return None
        plain, parts = plain_comparison(condition), compared_expression(condition)
        if plain is not None:  # with a hidden column
            numbers = [constant.text for constant in plain.constants]
            values = _whole_numbers(column)
            is_same = (plain.operator, numbers) == (compared.operator, list(map(str, compared.numbers)))
            return _KnownExpression(index, values, None) if is_same and values is not None else None
        if parts is None or parts[1:] != (compared.operator, compared.numbers):
            return None
        values, seen = compiler.dictionary.whole_numbers(index, parts[0]), None
        if column.grid is not None:
            seen = None if compiler.evidence is None else compiler.evidence.whole_numbers(index, parts[0])
            if seen is None or compiler.lines.ranges(index, condition) is not None:
                return None
        return None if values is None else _KnownExpression(index, values, seen)


def _whole_numbers(column: Column) -> WholeNumbers | None:
    """A column's own values, if they are whole numbers and all listed."""
    if column.type not in INTEGERS or column.grid is not None:
        return None
    numbers = [*map(int, column.values), *([0] if column.has_null else [])]
    known = np.arange(len(numbers)) < len(column.values)
    return WholeNumbers(np.array(numbers, dtype=np.int64), known)
