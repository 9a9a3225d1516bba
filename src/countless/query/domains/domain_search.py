"""Evaluation of comparisons with literals by binary search in the sorted domain.

The fast twin of :class:`.DomainTables` for the most common predicates: ``= <> < <= > >=``,
BETWEEN and IN with literals of the column's own type, and IS NULL. Other predicates get None here, and so do columns
with a grid, whose domain is not known.
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

from countless.arrays import BoolArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import DECIMAL, INTEGERS, TEXT
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
from countless.query.domains.truth import Truth

# Digits are those of ASCII: Python reads others too, and DuckDB does not.
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII)
ZONED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00", re.ASCII)
PLAIN_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
PLAIN_FLOAT = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?|-?inf", re.ASCII)


class Search:
    """The sorted domains of a schema as keys that Python can compare. Those of a column are made when first needed."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._keys: dict[int, _Keys | None] = {}
        self._sizes: dict[int, tuple[int, int]] = {}

    def truth(self, index: int, comparison: PlainComparison | None) -> Truth | None:
        """Where ``comparison`` with column ``index`` is true and where false; None if only DuckDB can evaluate it."""
        if comparison is None:
            return None
        true = self.satisfied(index, comparison)
        if true is None:
            return None
        false = ~true
        if comparison.operator != IS_NULL:  # a comparison with NULL is NULL
            false[self._size_of(index)[1] :] = False
        return Truth(true, false)

    def satisfied(self, index: int, comparison: PlainComparison, negated: bool = False) -> BoolArray | None:
        """The codes for which ``comparison`` is true, or false if ``negated``; None if only DuckDB can evaluate it."""
        size, null_code = self._sizes.get(index) or self._size_of(index)
        operator, constants = comparison
        if operator == IS_NULL:
            matches: BoolArray = np.full(size, negated)
            matches[null_code:] = not negated
            return matches
        try:
            keys = self._keys[index]
        except KeyError:
            keys = self._keys[index] = _keys_of(self.schema.coded_column(index))
        ranges = None if keys is None else _ranges(keys, operator, constants)
        if ranges is None:
            return None
        matches = np.zeros(size, dtype=np.bool_)
        if (operator == "<>") == negated:
            for low, high in ranges:
                matches[low:high] = True
            return matches
        matches[:null_code] = True
        for low, high in ranges:
            matches[low:high] = False
        return matches

    def _size_of(self, index: int) -> tuple[int, int]:
        """The number of codes of a column, and the code of NULL."""
        size_and_null = self._sizes.get(index)
        if size_and_null is None:
            column = self.schema.coded_column(index)
            size_and_null = self._sizes[index] = column.size, column.null
        return size_and_null


def read_literal(kind: str, constant: Constant) -> str | None:
    """The text of ``constant`` if a column of type ``kind`` can be compared with it here; else None."""
    if kind in INTEGERS or DECIMAL.fullmatch(kind):
        key: object = _read_decimal(constant)
    elif kind == "DOUBLE":
        key = _read_double(constant)
    elif kind == TEXT:
        key = _read_string(constant)
    elif kind == "DATE":
        key = _read_date(constant)
    else:
        key = _read_timestamp(constant) if kind == "TIMESTAMP" else None
    return None if key is None else str(key)


class _Keys:
    """A column's values as comparable keys, and the function that reads a literal as a key."""

    def __init__(self, values: list[Any], count: int, read: Callable[[Constant], Any]) -> None:
        self.values = values  # sorted; without NaN, which comes after all others
        self.count = count  # with NaN
        self.read = read

    def range(self, operator: str, key: Any) -> tuple[int, int]:
        """The codes whose values compare with ``key`` by the operator; for <> those that are equal."""
        if operator == "<=":
            return 0, bisect_right(self.values, key)
        if operator == ">=":
            return bisect_left(self.values, key), self.count
        if operator == "<":
            return 0, bisect_left(self.values, key)
        if operator == ">":
            return bisect_right(self.values, key), self.count
        low = bisect_left(self.values, key)
        return low, bisect_right(self.values, key, low)


def _ranges(keys: _Keys, operator: str, constants: tuple[Constant, ...]) -> list[tuple[int, int]] | None:
    """The ranges of codes that a comparison allows (for <>: forbids)."""
    literal_keys = [keys.read(constant) for constant in constants]
    if None in literal_keys:
        return None
    if operator == BETWEEN:
        return [(keys.range(">=", literal_keys[0])[0], keys.range("<=", literal_keys[1])[1])]
    if operator == IN:
        operator = "="
    return [keys.range(operator, key) for key in literal_keys]


def _keys_of(column: Column) -> _Keys | None:
    values, kind = column.values, column.type
    if kind in INTEGERS:
        return _Keys(list(map(int, values)), len(values), _read_decimal)
    if DECIMAL.fullmatch(kind):
        return _Keys(list(map(Decimal, values)), len(values), _read_decimal)
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


def _read_decimal(constant: Constant) -> int | Decimal | None:
    # DuckDB reads longer literals as DOUBLE or HUGEINT: leave those to it.
    kind, text = constant
    if kind == NUMBER and text.isdecimal() and text.isascii() and len(text) <= 18:
        return int(text)
    return Decimal(constant.text) if _is_number(constant, 18) else None


def _read_double(constant: Constant) -> float | None:
    is_cast = constant.kind == "DOUBLE" and PLAIN_FLOAT.fullmatch(constant.text)
    return float(constant.text) if is_cast or _is_number(constant, 15) else None


def _is_number(constant: Constant, longest: int) -> bool:
    """Whether it is a plain number, without its sign not longer than ``longest``."""
    digits = constant.text.removeprefix("-")
    return constant.kind == NUMBER and len(digits) <= longest and PLAIN_NUMBER.fullmatch(digits) is not None


def _read_string(constant: Constant) -> str | None:
    return constant.text if constant.kind == STRING else None


def _read_boolean(constant: Constant) -> bool | None:
    return constant.text == "true" if constant.kind == BOOLEAN else None


def _read_date(constant: Constant) -> str | None:
    return _iso(constant, "DATE", DATE, datetime.date.fromisoformat)


def _read_timestamp(constant: Constant) -> str | None:
    if constant.kind == "DATE":  # DuckDB compares a date with a timestamp as the midnight that it begins with
        text = _read_date(constant)
    else:
        text = _iso(constant, "TIMESTAMP", TIMESTAMP, datetime.datetime.fromisoformat)
    return text + " 00:00:00" if text is not None and len(text) == 10 else text


def _read_zoned(constant: Constant) -> str | None:
    return _iso(constant, "TIMESTAMP WITH TIME ZONE", ZONED, datetime.datetime.fromisoformat)


def _iso(constant: Constant, kind: str, form: re.Pattern[str], check: Callable[[str], object]) -> str | None:
    """The text of a date or timestamp literal, bare or cast to ``kind``, if it has exactly this form."""
    if constant.kind not in (STRING, kind) or not form.fullmatch(constant.text):
        return None
    try:
        check(constant.text)
    except ValueError:
        return None
    return constant.text
