"""Whether numbers of two types compare by their exact values, although DuckDB casts one of them to a float first."""

from __future__ import annotations

import math
from fractions import Fraction

from countless.data.columns.types import FLOATS, INTEGERS, decimal_digits

EXACT_UNITS = {"FLOAT": 2**23, "DOUBLE": 2**52}  # below these, neighbouring integers are different floats
EXACT_POWERS_OF_TEN = {"FLOAT": 10, "DOUBLE": 22}  # division by a larger power rounds once more
BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}  # the unsigned types have as many
HUGE = frozenset({"HUGEINT", "UHUGEINT"})  # DuckDB compares one with the other as DOUBLEs
MOST_DIGITS = 15  # a number of 128 bits with at most so many digits is cast to a float as in Python
MOST_DIGITS_OF_64_BITS = 18  # a DECIMAL with more takes 128 bits


def compares_exactly(column: str, kind: str, text: str) -> bool:
    """Whether DuckDB compares a number with a column of integers or decimals by their exact values.

    It does not if it casts the column to floats, and different values near the number become the same float.

    Args:
        column: the type of the column.
        kind: the type of the number.
        text: the number, as DuckDB prints it.

    >>> compares_exactly("BIGINT", "DOUBLE", "9007199254740992.0"), compares_exactly("INTEGER", "DOUBLE", "1e300")
    (False, True)
    >>> compares_exactly("INTEGER", "FLOAT", "16777216.0"), compares_exactly("BIGINT", "BIGINT", "9007199254740993")
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
    if units > 2 * largest:  # larger than all values, and than all that they are rounded to
        return True
    return units < EXACT_UNITS[kind] and digits <= EXACT_POWERS_OF_TEN[kind]


def has_exact_float(kind: str, text: str) -> bool:
    """Whether DuckDB casts a number to a float as Python does. Large numbers of 128 bits are rounded twice.

    >>> has_exact_float("HUGEINT", "122615018465052810556"), has_exact_float("DECIMAL(16,15)", "1.526297926902771")
    (False, True)
    """
    if kind in FLOATS or (kind in INTEGERS and kind not in HUGE):
        return True
    if kind not in HUGE and decimal_digits(kind)[0] <= MOST_DIGITS_OF_64_BITS:
        return True
    return sum(letter.isdigit() for letter in text) <= MOST_DIGITS
