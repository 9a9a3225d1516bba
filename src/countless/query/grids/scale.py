"""Order-preserving keys of values: keys compare as DuckDB compares the values, and can be interpolated."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS, TEXT, decimal_digits, is_number
from countless.query.grids.precision import compares_exactly, has_exact_float

Key = Any  # a number (int, float or Fraction, which compare with each other exactly) or a string

DAY = 86_400 * 10**9  # dates and times are counted in nanoseconds
WHOLE = {"DATE": DAY, "TIMESTAMP_S": 10**9, "TIMESTAMP_MS": 10**6}
INSTANT = re.compile(r"(\d+)-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d:\d\d:\d\d(?:\.\d+)?))?(?:\+00)?( \(BC\))?")
PLAIN_INSTANT = re.compile(r"(?!0000)\d{4}-\d\d-\d\d(?: (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)?", re.ASCII)
CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
END_OF_TIME = DAY * 10**16  # a multiple of every step, so that rounding to a step does not change it
PAST_EVERY_DOUBLE = 10**400  # the key of infinity; NaN, which DuckDB sorts after it, has the key math.inf
CENTURIES = 400, 146_097  # the calendar repeats after this many years, which are this many days
FINE = 2**50  # resolution of a fraction between two integers
FAR = 2**20  # between integers this far apart, an interpolated integer is as good as a fraction
COMPARED_BYTES = 8  # of two strings after their common prefix: more would not change a float


@dataclass(frozen=True)
class Scale:
    """How the values of one type become keys.

    ``read`` returns the key of a value, from its type and its text as DuckDB prints them, or None if DuckDB does not
    compare it with this type by exact values. ``between`` is the position of a key between a lower and a higher key,
    from 0 to 1. If there is a ``step``, values are multiples of it.
    """

    read: Callable[[str, str], Key]
    between: Callable[[Key, Key, Key], float]
    step: int | Fraction | None = None


def scale_of(kind: str) -> Scale:
    """The scale of a column of type ``kind``.

    >>> dates = scale_of("DATE")
    >>> low, middle, high = (dates.read("DATE", f"2020-01-{day}") for day in ("01", "08", "29"))
    >>> dates.between(middle, low, high)
    0.25
    >>> scale_of("VARCHAR").between("id-c", "id-a", "id-e")
    0.5
    """
    if kind in INTEGERS:
        return Scale(partial(_whole, kind), _numbers_between, 1)
    if DECIMAL.fullmatch(kind):
        step = Fraction(1, 10 ** decimal_digits(kind)[1])
        return Scale(partial(_decimal, kind, step), _numbers_between, step)
    if kind in FLOATS:
        return Scale(_double if kind == "DOUBLE" else _single, _numbers_between)
    if kind == TEXT:
        return Scale(lambda type_, text: text if type_ == TEXT else None, _strings_between)
    if kind == "TIME":
        return Scale(lambda type_, text: _clock(text) if type_ == "TIME" else None, _numbers_between)
    return Scale(_instant, _numbers_between, WHOLE.get(kind))


def written(kind: str, key: Key) -> str:
    """The value of type ``kind`` that is nearest to ``key``, as DuckDB prints it: the inverse of ``read``.

    >>> written("INTEGER", 2.6), written("DECIMAL(5,2)", 0.126), written("DOUBLE", 0.5), written("VARCHAR", "id")
    ('3', '0.13', '0.5', 'id')
    >>> dates = scale_of("TIMESTAMP")
    >>> written("TIMESTAMP", dates.read("TIMESTAMP", "2020-01-31 12:00:00.25"))
    '2020-01-31 12:00:00.25'
    """
    if kind == TEXT:
        return str(key)
    if kind in FLOATS:
        return _float_text(key)
    step = scale_of(kind).step or 1
    key = round(Fraction(key) / step) * step
    if kind in INTEGERS:
        return str(key)
    if DECIMAL.fullmatch(kind):
        digits = decimal_digits(kind)[1]
        return f"{Decimal(key.numerator) / Decimal(key.denominator):.{digits}f}"
    if abs(key) >= END_OF_TIME:
        return "-infinity" if key < 0 else "infinity"
    days, nanoseconds = divmod(int(key), DAY)
    clock = _clock_text(nanoseconds if kind == "TIMESTAMP_NS" else round(nanoseconds / 1000) * 1000)
    if kind == "TIME":
        return clock
    return _date_text(days) if kind == "DATE" else f"{_date_text(days)} {clock}"


def _float_text(key: Key) -> str:
    if key == math.inf:
        return "nan"
    return "inf" if key == PAST_EVERY_DOUBLE else repr(float(key))


def _clock_text(nanoseconds: int) -> str:
    seconds, subsecond = divmod(min(nanoseconds, DAY - 1), 10**9)
    fraction = f".{subsecond:09}".rstrip("0") if subsecond else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _date_text(days: int) -> str:
    year, month, day = _date(days)
    before = " (BC)" if year < 1 else ""
    return f"{1 - year if year < 1 else year:04}-{month:02}-{day:02}{before}"


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day; the year before 1 is 0."""
    cycles = (days - 1) // CENTURIES[1]
    date = datetime.date.fromordinal(days - cycles * CENTURIES[1])
    return date.year + cycles * CENTURIES[0], date.month, date.day


def _days(year: int, month: int, day: int) -> int:
    cycles = (year - 1) // CENTURIES[0]
    return datetime.date(year - cycles * CENTURIES[0], month, day).toordinal() + cycles * CENTURIES[1]


def interpolate(low: Key, high: Key, fraction: float) -> Key:
    """The number at a ``fraction`` of the distance from one key to another; two floats give a float.

    >>> interpolate(10, 20, 0.25), interpolate(0.5, 1.5, 0.25)
    (Fraction(25, 2), 0.75)
    """
    if isinstance(low, float) and isinstance(high, float):
        return low + fraction * (high - low)
    if isinstance(low, int) and isinstance(high, int) and high - low > FAR:
        return low + (high - low) * int(fraction * FINE) // FINE  # integers are much faster than fractions
    return low + Fraction(fraction) * (high - low)


def month_of(key: Key) -> int:
    """The calendar month of an instant, counted from January of the year 0."""
    year, month, _ = _date(math.floor(Fraction(key) / DAY))
    return 12 * year + month - 1


def start_of_month(month: int) -> Key:
    """The instant at which a month begins, counted as :func:`month_of` does.

    >>> written("DATE", start_of_month(month_of(scale_of("DATE").read("DATE", "2024-02-29")) + 1))
    '2024-03-01'
    """
    return _days(month // 12, month % 12 + 1, 1) * DAY


def _exact(kind: str, text: str) -> Key | None:
    if kind in FLOATS:
        return _ordered(float(text))
    if not is_number(kind):
        return None
    number = Fraction(text) if "." in text or kind not in INTEGERS else Fraction(int(text))
    return number.numerator if number.denominator == 1 else number


def _whole(column: str, kind: str, text: str) -> Key | None:
    return _exact(kind, text) if compares_exactly(column, kind, text) else None


def _decimal(column: str, step: Fraction, kind: str, text: str) -> Key | None:
    """DuckDB compares a DECIMAL with a FLOAT or a DOUBLE as such: 0.1 is equal to the DOUBLE that is nearest to it."""
    if not compares_exactly(column, kind, text):
        return None
    key = _exact(kind, text)
    if kind not in FLOATS or not math.isfinite(number := float(text)):
        return key
    nearest = round(Fraction(text) / step) * step
    if kind == "DOUBLE":
        return nearest if float(nearest) == number else key
    return nearest if np.float32(float(nearest)) == np.float32(number) else key


def _double(kind: str, text: str) -> Key | None:
    """DuckDB compares a DOUBLE with any other number as doubles; it prints a FLOAT with fewer digits than it has."""
    if kind == "FLOAT":
        return _ordered(float(np.float32(text)))
    return _ordered(float(text)) if is_number(kind) and has_exact_float(kind, text) else None


def _single(kind: str, text: str) -> Key | None:
    """DuckDB compares a FLOAT with a DOUBLE as doubles, and with any other number as floats of 32 bits."""
    if kind == "DOUBLE" or not is_number(kind):
        return _double(kind, text)
    with np.errstate(over="ignore"):
        return _ordered(float(np.float32(text))) if has_exact_float(kind, text) else None


def _ordered(number: float) -> Key:
    if math.isnan(number):
        return math.inf
    return PAST_EVERY_DOUBLE if number == math.inf else number


def _instant(kind: str, text: str) -> Key | None:
    if kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return None
    if text.endswith("infinity"):
        return -END_OF_TIME if text.startswith("-") else END_OF_TIME
    if PLAIN_INSTANT.fullmatch(text):  # nearly all are, and a grid has thousands
        moment = datetime.datetime.fromisoformat(text)
        return moment.toordinal() * DAY + ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 10**9
    match = INSTANT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year = 1 - int(match[1]) if match[4] or match[6] else int(match[1])
    return _days(year, int(match[2]), int(match[3])) * DAY + (_clock(match[5]) if match[5] else 0)


def _clock(text: str) -> int:
    match = CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
    return seconds * 10**9 + int((match[4] or "").ljust(9, "0"))


def _numbers_between(key: Key, low: Key, high: Key) -> float:
    if isinstance(key, int) and isinstance(low, int) and isinstance(high, int):
        return (key - low) / (high - low)
    return float((Fraction(key) - Fraction(low)) / (Fraction(high) - Fraction(low)))  # floats might overflow


def _strings_between(key: str, low: str, high: str) -> float:
    """The position of a string between two others: bytes after their common prefix are read as digits of base 256."""
    texts = [text.encode("utf-8", "surrogatepass") for text in (key, low, high)]
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(texts[1], texts[2], strict=False)))
    position, start, end = (
        int.from_bytes(text[common : common + COMPARED_BYTES].ljust(COMPARED_BYTES, b"\0"), "big") for text in texts
    )
    return (position - start) / (end - start) if end > start else 0.0
