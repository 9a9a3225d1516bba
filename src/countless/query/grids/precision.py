"""Where numbers of two types compare in the plain way, although DuckDB casts one of them to a float first."""

from __future__ import annotations

import math
from fractions import Fraction

from countless.data.columns.types import FLOATS, INTEGERS, decimal_digits

UNITS_TOLD_APART = {"FLOAT": 2**23, "DOUBLE": 2**52}  # neighbours below that are different floats
EXACT_POWERS_OF_TEN = {"FLOAT": 10, "DOUBLE": 22}  # by larger ones DuckDB cannot divide without another rounding
BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}  # with a U before it, the same
HUGE = frozenset({"HUGEINT", "UHUGEINT"})  # DuckDB compares one with the other as DOUBLEs
MOST_DIGITS = 15  # of a number of 128 bits that DuckDB rounds to a float once, as Python does
MOST_DIGITS_OF_64_BITS = 18  # a DECIMAL with more takes 128 bits


def is_told_apart(column: str, kind: str, text: str) -> bool:
    """Whether a number compares in the plain way with a column of integers or decimals.

    It does not if DuckDB casts the column to a float that cannot tell the values near the number apart.

    Args:
        column: the type of the column.
        kind: the type of the number.
        text: the number, as DuckDB prints it.

    >>> is_told_apart("BIGINT", "DOUBLE", "9007199254740992.0"), is_told_apart("INTEGER", "DOUBLE", "1e300")
    (False, True)
    >>> is_told_apart("INTEGER", "FLOAT", "16777216.0"), is_told_apart("BIGINT", "BIGINT", "9007199254740993")
    (False, True)
    """
    if column in HUGE and kind in HUGE and column != kind:
        kind = "DOUBLE"
    if kind not in FLOATS:
        return True
    number = float(text)
    if not math.isfinite(number):
        return True
    if column in INTEGERS:
        largest, digits = 2 ** BITS[column.removeprefix("U")], 0
    else:
        width, digits = decimal_digits(column)
        largest = 10**width
    units = abs(Fraction(number)) * 10**digits
    if units > 2 * largest:  # beyond all values, and beyond what they are rounded to
        return True
    return units < UNITS_TOLD_APART[kind] and digits <= EXACT_POWERS_OF_TEN[kind]


def has_exact_float(kind: str, text: str) -> bool:
    """Whether DuckDB casts a number to a float as Python does: large ones of 128 bits are rounded twice.

    >>> has_exact_float("HUGEINT", "122615018465052810556"), has_exact_float("DECIMAL(16,15)", "1.526297926902771")
    (False, True)
    """
    if kind in FLOATS or (kind in INTEGERS and kind not in HUGE):
        return True
    if kind not in HUGE and decimal_digits(kind)[0] <= MOST_DIGITS_OF_64_BITS:
        return True
    return sum(letter.isdigit() for letter in text) <= MOST_DIGITS
