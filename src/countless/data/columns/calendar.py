"""Calendar parts of a timestamp or date: hidden columns of the model, so that ``hour(ts) = 3`` is a set of codes.

A column in one position needs none: the hour of each of its values is known. One in digits or a grid gets the parts
that vary. A part is never stored with the rows: it follows from the timestamp.
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
PARTS = {HOUR: (0, 23), WEEKDAY: (0, 6), MONTH: (1, 12), YEAR: (1, 9999)}  # least and greatest number
FUNCTIONS = {HOUR: "hour", WEEKDAY: "dayofweek", MONTH: "month", YEAR: "year"}  # DuckDB's
MOST_YEARS = 300  # between the first and the last: with more, the year is not a part
EPOCH_WEEKDAY = 4  # January 1, 1970 was a Thursday
# Not plain are years before 1 and after 9999, and infinity.
PLAIN = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?", re.ASCII)


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
        """The values as DuckDB prints them: ``first`` has code 0."""
        return tuple(map(str, range(self.first, self.last + 1)))

    @property
    def label(self) -> str:
        """The part as people write it: ``hour(ts)``, or ``hour("order date")``."""
        return f"{FUNCTIONS[self.part]}({self.name})" if self.name.isidentifier() else self.sql

    @property
    def sql(self) -> str:
        """SQL for the part of a row's timestamp."""
        return f"{FUNCTIONS[self.part]}({quote_identifier(self.name)})"

    @property
    def null(self) -> int:
        """The code of NULL: also that of the part of an infinite timestamp."""
        return self.last - self.first + 1

    def codes(self, texts: Sequence[str]) -> IntArray:
        """The code for each timestamp, given as DuckDB prints it, and last the code of NULL."""
        codes = np.full(len(texts) + 1, self.null)
        plain = [index for index, text in enumerate(texts) if PLAIN.fullmatch(text)]
        times = np.array([texts[index] for index in plain], dtype="datetime64[us]")
        codes[plain] = calendar_numbers(self.part, times) - self.first
        return codes

    def grown(self, least: int | None, greatest: int | None, has_null: bool) -> CalendarPart:
        """This part extended to the numbers ``least`` and ``greatest``, and to NULL."""
        first, last = min(self.first, least or self.first), max(self.last, greatest or self.last)
        return replace(self, first=first, last=last, has_null=self.has_null or has_null)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        return {"of": self.of, "part": self.part, "first": self.first, "last": self.last, "has_null": self.has_null}


def calendar_numbers(part: str, times: NDArray[np.datetime64]) -> IntArray:
    """The ``part`` of each time, as DuckDB computes it.

    >>> times = np.array(["2024-02-29 23:59:59"], dtype="datetime64[us]")
    >>> [int(calendar_numbers(part, times)[0]) for part in PARTS]
    [23, 4, 2, 2024]
    """
    if part == HOUR:
        hours: IntArray = times.astype("datetime64[h]").astype(np.int64) % 24
        return hours
    if part == WEEKDAY:
        days: IntArray = (times.astype("datetime64[D]").astype(np.int64) + EPOCH_WEEKDAY) % 7
        return days
    months: IntArray = times.astype("datetime64[M]").astype(np.int64)
    return months % 12 + 1 if part == MONTH else months // 12 + 1970


def calendar_parts(of: int, name: str, kind: str, values: Sequence[str], has_null: bool) -> Iterator[CalendarPart]:
    """The calendar parts that vary among ``values``: values of a column in order, with its least and greatest.

    >>> days = ["2024-01-01", "2024-01-02", "2024-02-07"]
    >>> [(part.part, part.first, part.last) for part in calendar_parts(0, "day", "DATE", days, False)]
    [('dow', 0, 6), ('month', 1, 12)]
    """
    plain = [text for text in values if PLAIN.fullmatch(text)]
    # Infinite dates have the code of NULL. There is no code for other dates that are not plain: then no part is made.
    if kind not in CALENDAR_TYPES or not plain or any("infinity" not in text for text in {*values} - {*plain}):
        return
    times = np.array(plain, dtype="datetime64[us]")
    for part, (first, last) in PARTS.items():
        numbers = calendar_numbers(part, times)
        if part == YEAR:
            first, last = int(numbers.min()), int(numbers.max())
        if numbers.min() < numbers.max() and last - first < MOST_YEARS:
            yield CalendarPart(of, name, part, first, last, has_null or len(plain) < len(values))
