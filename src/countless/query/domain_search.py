"""Comparisons with a literal, evaluated by binary search in the sorted domain.

The fast twin of :class:`.DomainTables` for the most common predicates: ``= <> < <= > >=``,
BETWEEN and IN with literals of the column's own kind, and IS NULL. Anything else gets no answer here, nor does a
column with a grid: its domain is not known.
"""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot import exp

from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import DECIMAL, INTEGERS, TEXT
from countless.query.domain_evaluation import Truth

# Digits are those of ASCII: Python reads others too, and DuckDB does not.
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII)
ZONED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00", re.ASCII)
PLAIN_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
PLAIN_FLOAT = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?|-?inf", re.ASCII)
FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


class Search:
    """The sorted domains of a schema as keys that Python can compare; a column's are made when first needed."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._keys: dict[int, _Keys | None] = {}

    def truth(self, index: int, predicate: exp.Expr) -> Truth | None:
        """Where ``predicate`` on column ``index`` is true and where false, or None if it must be run in DuckDB."""
        column = self.schema.coded_column(index)
        if is_null_test(predicate):
            true = np.zeros(column.size, dtype=bool)
            true[column.null :] = True
            return Truth(true, ~true)
        if index not in self._keys:
            self._keys[index] = _keys_of(column)
        keys = self._keys[index]
        ranges = None if keys is None else _ranges(keys, predicate)
        if ranges is None:
            return None
        true = np.zeros(column.size, dtype=bool)
        for low, high in ranges:
            true[low:high] = True
        if isinstance(predicate, exp.NEQ):
            true[: len(column.values)] ^= True
        false = ~true
        false[len(column.values) :] = False  # a comparison with NULL is NULL
        return Truth(true, false)


def is_null_test(predicate: exp.Expr) -> bool:
    """Whether ``predicate`` is a column's IS NULL."""
    return (
        isinstance(predicate, exp.Is)
        and isinstance(predicate.this, exp.Column)
        and isinstance(predicate.expression, exp.Null)
    )


def read_literal(kind: str, node: exp.Expr) -> str | None:
    """The text of a plain literal that a column of type ``kind`` compares with, if it is one."""
    if kind in INTEGERS or DECIMAL.fullmatch(kind):
        key: object = _read_decimal(node)
    elif kind == "DOUBLE":
        key = _read_double(node)
    elif kind == TEXT:
        key = _read_string(node)
    elif kind == "DATE":
        key = _read_date(node)
    else:
        key = _read_timestamp(node) if kind == "TIMESTAMP" else None
    return None if key is None else str(key)


class _Keys:
    """A column's values as comparable keys, and how a literal becomes one."""

    def __init__(self, values: list[Any], count: int, read: Callable[[exp.Expr], Any]) -> None:
        self.values = values  # sorted; without NaN, which comes after all others
        self.count = count  # with NaN
        self.read = read

    def range(self, operator: type[exp.Expr], key: Any) -> tuple[int, int]:
        """The codes that compare so with ``key``; for <> those that are equal."""
        low, high = bisect_left(self.values, key), bisect_right(self.values, key)
        if operator is exp.LT:
            return 0, low
        if operator is exp.LTE:
            return 0, high
        if operator is exp.GT:
            return high, self.count
        if operator is exp.GTE:
            return low, self.count
        return low, high


def _ranges(keys: _Keys, predicate: exp.Expr) -> list[tuple[int, int]] | None:
    """The ranges of codes that ``predicate`` allows (for <>: forbids)."""
    operator = type(predicate)
    if operator in FLIPPED:
        column, other = predicate.this, predicate.expression
        if isinstance(other, exp.Column):
            column, other, operator = other, column, FLIPPED[operator]
        key = keys.read(other) if isinstance(column, exp.Column) else None
        return None if key is None else [keys.range(operator, key)]
    if operator is exp.Between and isinstance(predicate.this, exp.Column) and not predicate.args.get("symmetric"):
        low, high = keys.read(predicate.args["low"]), keys.read(predicate.args["high"])
        if low is None or high is None:
            return None
        return [(keys.range(exp.GTE, low)[0], keys.range(exp.LTE, high)[1])]
    if operator is exp.In and isinstance(predicate.this, exp.Column) and not predicate.args.get("query"):
        found = [keys.read(item) for item in predicate.expressions]
        if not found or any(key is None for key in found):
            return None
        return [keys.range(exp.EQ, key) for key in found]
    return None


def _keys_of(column: Column) -> _Keys | None:
    values, kind = column.values, column.type
    if kind in INTEGERS or DECIMAL.fullmatch(kind):
        return _Keys([Decimal(text) for text in values], len(values), _read_decimal)
    if kind == "DOUBLE":
        numbers = [float(text) for text in values]
        return _Keys([number for number in numbers if not math.isnan(number)], len(values), _read_double)
    if kind == TEXT:
        return _Keys(list(values), len(values), _read_string)
    if kind == "BOOLEAN":
        return _Keys([text == "true" for text in values], len(values), _read_boolean)
    if kind == "DATE" and all(DATE.fullmatch(text) for text in values):
        return _Keys(list(values), len(values), _read_date)
    if kind == "TIMESTAMP" and all(
        TIMESTAMP.match(text) and text[10:11] == " " and "BC" not in text for text in values
    ):
        return _Keys(list(values), len(values), _read_timestamp)
    if kind == "TIMESTAMP WITH TIME ZONE" and all(ZONED.fullmatch(text) for text in values):
        return _Keys(list(values), len(values), _read_zoned)
    return None


def _number(node: exp.Expr) -> tuple[str, str] | None:
    """Sign and digits of a plain number literal."""
    sign, inner = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if isinstance(inner, exp.Literal) and not inner.is_string and PLAIN_NUMBER.fullmatch(inner.this):
        return sign, inner.this
    return None


def _read_decimal(node: exp.Expr) -> Decimal | None:
    number = _number(node)
    # DuckDB reads longer literals as DOUBLE or HUGEINT: leave those to it.
    return None if number is None or len(number[1]) > 18 else Decimal("".join(number))


def _read_double(node: exp.Expr) -> float | None:
    if type(node) is exp.Cast and node.is_type(exp.DType.DOUBLE) and isinstance(node.this, exp.Literal):
        return float(node.this.this) if PLAIN_FLOAT.fullmatch(node.this.this) else None
    number = _number(node)
    return None if number is None or len(number[1]) > 15 else float("".join(number))


def _read_string(node: exp.Expr) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _read_boolean(node: exp.Expr) -> bool | None:
    return bool(node.this) if isinstance(node, exp.Boolean) else None


def _read_date(node: exp.Expr) -> str | None:
    return _iso(node, exp.DType.DATE, DATE, datetime.date.fromisoformat)


def _read_timestamp(node: exp.Expr) -> str | None:
    text = _iso(node, exp.DType.TIMESTAMPNTZ, TIMESTAMP, datetime.datetime.fromisoformat)
    return text + " 00:00:00" if text is not None and len(text) == 10 else text


def _read_zoned(node: exp.Expr) -> str | None:
    return _iso(node, exp.DType.TIMESTAMPTZ, ZONED, datetime.datetime.fromisoformat)


def _iso(node: exp.Expr, kind: exp.DType, form: re.Pattern[str], check: Callable[[str], object]) -> str | None:
    """The text of a date or timestamp literal, bare or cast to ``kind``, if it has exactly this form."""
    if type(node) is exp.Cast and node.is_type(kind):
        node = node.this
    if not (isinstance(node, exp.Literal) and node.is_string and form.fullmatch(node.this)):
        return None
    try:
        check(node.this)
    except ValueError:
        return None
    return str(node.this)
