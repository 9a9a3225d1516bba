"""Tests whether texts are values of a type as DuckDB prints them, so that every one can be cast back."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from functools import cache, partial

from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS, TEXT, TIMES, decimal_digits

BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
LARGEST_FLOAT = {"FLOAT": 3.4028236e38, "DOUBLE": float("inf")}
MOST_DIGITS = 38  # of a DECIMAL
YEARS = 400  # after which the calendar repeats
# Year, month and day of the first and the last moment of a type; the year before 1 is 0.
LIMITS = {"DATE": ((-5877641, 6, 25), (5881580, 7, 10)), "TIMESTAMP_NS": ((1677, 9, 22), (2262, 4, 11))}
USUAL_LIMITS = ((-290308, 12, 22), (294247, 1, 10))
INTEGER = re.compile(r"-?\d{1,40}", re.ASCII)
FRACTION = re.compile(r"-?(\d{1,40})?(?:\.(\d{1,40}))?", re.ASCII)
FLOAT = re.compile(r"-?(?:\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,4})?|inf|nan)", re.ASCII)
CLOCK = r"(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[+-]\d\d(?::\d\d)?)?"
TIME = re.compile(CLOCK, re.ASCII)
INSTANT = re.compile(rf"(\d{{1,7}})-(\d\d)-(\d\d)(?: \(BC\))?(?: {CLOCK})?(?: \(BC\))?", re.ASCII)
INFINITE = ("infinity", "-infinity")


def are_printed(kind: str, texts: Sequence[str]) -> bool:
    """Whether every one of ``texts`` is a value of type ``kind``.

    >>> are_printed("TINYINT", ["-3", "127"]), are_printed("TINYINT", ["128"]), are_printed("DATE", ["2020-02-30"])
    (True, False, False)
    """
    if kind == TEXT:  # every text is one
        return True
    plain, test = _plain(kind), _test(kind)
    lines = "\n".join(texts) + "\n"
    if plain is None or lines.count("\n") != len(texts):
        return all(map(test, texts))
    start = 0
    while (found := plain.match(lines, start)) is not None and (start := found.end()) < len(lines):
        end = lines.index("\n", start)
        if not test(lines[start:end]):
            return False
        start = end + 1
    return True


@cache
def _plain(kind: str) -> re.Pattern[str] | None:
    """A pattern of lines that certainly are values: one substitution removes these, and the rest is tested singly."""
    if kind in INTEGERS:
        least, most = _range(kind)
        form = rf"{'-?' if least < 0 else ''}\d{{1,{len(str(most)) - 1}}}"
    elif kind in FLOATS:
        form = r"-?\d{1,15}(?:\.\d{1,20})?"
    elif kind in TIMES and kind not in ("TIME", "TIMESTAMP_NS"):
        clock = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?"
        short, long = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])", r"(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
        form = rf"\d{{4}}-(?:{short}|{long})(?: {clock})?"  # but for February 29
    else:
        return None
    return re.compile(rf"(?:{form}\n)*+", re.ASCII)


def is_type(kind: str) -> bool:
    """Whether ``kind``, which has the form of a type, is one: a DECIMAL may have too many digits.

    >>> is_type("DECIMAL(10,2)"), is_type("DECIMAL(99,2)"), is_type("DECIMAL(3,4)")
    (True, False, False)
    """
    if DECIMAL.fullmatch(kind) is None:
        return True
    digits, scale = decimal_digits(kind)
    return 1 <= digits <= MOST_DIGITS and scale <= digits


def _test(kind: str) -> Callable[[str], bool]:
    """The test of one text."""
    if kind in INTEGERS:
        least, most = _range(kind)
        return lambda text: INTEGER.fullmatch(text) is not None and least <= int(text) <= most
    if kind in FLOATS:
        largest = LARGEST_FLOAT[kind]
        return lambda text: FLOAT.fullmatch(text) is not None and _fits(float(text), largest, text)
    if DECIMAL.fullmatch(kind):
        digits, scale = decimal_digits(kind)
        return lambda text: _is_decimal(text, digits - scale, scale)
    if kind == "BOOLEAN":
        return ("true", "false").__contains__
    if kind == "TIME":
        return lambda text: (match := TIME.fullmatch(text)) is not None and _is_clock(*match.groups())
    if kind in TIMES:
        return partial(_is_instant, *LIMITS.get(kind, USUAL_LIMITS))
    return lambda text: False


def _range(kind: str) -> tuple[int, int]:
    bits = BITS[kind.removeprefix("U")]
    return (0, 2**bits - 1) if kind.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _fits(number: float, largest: float, text: str) -> bool:
    """Whether a number is not too large for its type; infinity and NaN, which are words, fit."""
    return abs(number) <= largest and abs(number) != float("inf") if text[-1].isdigit() else True


def _is_decimal(text: str, before: int, after: int) -> bool:
    match = FRACTION.fullmatch(text)
    if match is None or match.groups() == (None, None):
        return False
    whole, decimals = match[1] or "", match[2] or ""
    return len(whole.lstrip("0")) <= before and len(decimals) <= after


def _is_clock(hours: str | None, minutes: str | None, seconds: str | None) -> bool:
    if hours is None or minutes is None or seconds is None:
        return hours is minutes is seconds is None
    return (int(hours) < 24 and int(minutes) < 60 and int(seconds) < 60) or hours + minutes + seconds == "240000"


def _is_instant(first: tuple[int, ...], last: tuple[int, ...], text: str) -> bool:
    match = INSTANT.fullmatch(text)
    if match is None:
        return text in INFINITE
    year, month, day = map(int, match.groups()[:3])
    if "(BC)" in text:
        year = 1 - year
    try:
        datetime.date((year - 1) % YEARS + 1, month, day)
    except ValueError:
        return False
    return first <= (year, month, day) <= last and _is_clock(*match.groups()[3:])
