"""Whether numbers of two types compare by their exact values, although DuckDB casts one of them to a float first."""

from __future__ import annotations

import math
from fractions import Fraction

from countless.data.columns.types import FLOATS, INTEGERS, decimal_digits

EXACT_UNITS = {"FLOAT": 2**23, "DOUBLE": 2**52}  # below these, neighbouring integers are different floats
EXACT_POWERS_OF_TEN = {"FLOAT": 10, "DOUBLE": 22}  # division by a larger power rounds once more
BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}  # the unsigned types have as many
HUGE = frozenset({"HUGEINT", "UHUGEINT"})  # DuckDB compares one with the other as DOUBLEs
MOST_DIGITS = 15  # numbers with at most so many digits are cast to a float as in Python


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
    """Whether DuckDB casts a number to a float as Python does. It does not for large numbers: these it rounds twice.

    >>> has_exact_float("HUGEINT", "122615018465052810556"), has_exact_float("DECIMAL(4,1)", "100.5")
    (False, True)
    """
    return kind in FLOATS or sum(letter.isdigit() for letter in text) <= MOST_DIGITS
