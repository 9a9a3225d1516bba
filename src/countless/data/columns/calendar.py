"""Calendar parts of a timestamp or date: hidden columns of the model, so that ``hour(ts) = 3`` is a set of codes.

A column of small codes needs none: each of its values has an hour. One in digits or a grid gets the parts that vary.
A part is never stored with the rows: it follows from the timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.cached_property import cached_property
from countless.data.columns.types import quote_identifier

CALENDAR_TYPES = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"})
HOUR, WEEKDAY, MONTH, YEAR = "hour", "dow", "month", "year"
PARTS = {HOUR: (0, 23), WEEKDAY: (0, 6), MONTH: (1, 12), YEAR: (1, 9999)}  # from, to
FUNCTIONS = {HOUR: "hour", WEEKDAY: "dayofweek", MONTH: "month", YEAR: "year"}  # of DuckDB
MOST_YEARS = 300  # from the first to the last, if the year is a part
THURSDAY = 4  # the first day of 1970
PLAIN = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?", re.ASCII)  # not BC, nor beyond 9999, nor infinity


@dataclass(frozen=True)
class CalendarPart:
    """One ``part`` of the column at index ``of``, called ``name``: whole numbers from ``first`` to ``last``."""

    of: int
    name: str
    part: str
    first: int
    last: int
    has_null: bool

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Its values as DuckDB prints them: the code of ``first`` is 0."""
        return tuple(map(str, range(self.first, self.last + 1)))

    @property
    def label(self) -> str:
        """How people write it."""
        return f"{FUNCTIONS[self.part]}({self.name})"

    @property
    def sql(self) -> str:
        """SQL for its value."""
        return f"{FUNCTIONS[self.part]}({quote_identifier(self.name)})"

    @property
    def null(self) -> int:
        """The code of NULL: also that of the part of an infinite timestamp."""
        return self.last - self.first + 1

    def codes(self, texts: Sequence[str]) -> IntArray:
        """The code of each timestamp that DuckDB prints so, and last that of NULL."""
        found = np.full(len(texts) + 1, self.null)
        plain = [place for place, text in enumerate(texts) if PLAIN.fullmatch(text)]
        times = np.array([texts[place] for place in plain], dtype="datetime64[us]")
        found[plain] = calendar_numbers(self.part, times) - self.first
        return found

    def grown(self, least: int | None, greatest: int | None, has_null: bool) -> CalendarPart:
        """With room for more years, and for NULL."""
        first, last = min(self.first, least or self.first), max(self.last, greatest or self.last)
        return replace(self, first=first, last=last, has_null=self.has_null or has_null)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        return {"of": self.of, "part": self.part, "first": self.first, "last": self.last, "has_null": self.has_null}


def calendar_numbers(part: str, times: NDArray[np.datetime64]) -> IntArray:
    """A part of each time, as DuckDB has it.

    >>> times = np.array(["2024-02-29 23:59:59"], dtype="datetime64[us]")
    >>> [int(calendar_numbers(part, times)[0]) for part in PARTS]
    [23, 4, 2, 2024]
    """
    if part == HOUR:
        hours: IntArray = times.astype("datetime64[h]").astype(np.int64) % 24
        return hours
    if part == WEEKDAY:
        days: IntArray = (times.astype("datetime64[D]").astype(np.int64) + THURSDAY) % 7
        return days
    months: IntArray = times.astype("datetime64[M]").astype(np.int64)
    return months % 12 + 1 if part == MONTH else months // 12 + 1970


def calendar_parts(of: int, name: str, kind: str, values: Sequence[str], has_null: bool) -> Iterator[CalendarPart]:
    """The parts that vary among some ``values`` of a column, which are in order: the first and the last are among them.

    >>> days = ["2024-01-01", "2024-01-02", "2024-02-07"]
    >>> [(part.part, part.first, part.last) for part in calendar_parts(0, "day", "DATE", days, False)]
    [('dow', 0, 6), ('month', 1, 12)]
    """
    plain = [text for text in values if PLAIN.fullmatch(text)]
    # A date that is not plain lies before all others or after them: infinite ones have no parts, others no place.
    if kind not in CALENDAR_TYPES or not plain or any("infinity" not in text for text in {*values} - {*plain}):
        return
    times = np.array(plain, dtype="datetime64[us]")
    for part, (first, last) in PARTS.items():
        numbers = calendar_numbers(part, times)
        if part == YEAR:
            first, last = int(numbers.min()), int(numbers.max())
        if numbers.min() < numbers.max() and last - first < MOST_YEARS:
            yield CalendarPart(of, name, part, first, last, has_null or len(plain) < len(values))
