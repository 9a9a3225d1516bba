"""The granularity of a column's values: whole minutes, two decimals, multiples of 50.

A grid knows only some of its values. What lies between is drawn, and must look like the table's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from countless.data.columns.types import DECIMAL, FLOATS, INTEGERS
from countless.data.sources.source import Source

OBEY = 0.999  # of the rows: if so many keep to a step, it is the column's
MOST_DECIMALS = 9  # of a floating-point number that is meant as a decimal one
EXACT_FLOAT = 2**53  # up to here a DOUBLE tells whole numbers apart
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6  # in microseconds
# Times keep to parts of a day, so that it does not matter from which day they are counted.
PARTS_OF_A_DAY = (
    *(10**power for power in range(6)),
    *(number * SECOND for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * MINUTE for number in (1, 2, 3, 5, 10, 15, 20, 30)),
    *(number * HOUR for number in (1, 2, 3, 4, 6, 8, 12, 24)),
)
# Numbers keep to round ones; seconds and milliseconds since a moment to minutes, hours and days.
ROUND_NUMBERS = (
    *(first * 10**power for power in range(10) for first in (1, 2, 5, 25)),
    *(number * unit for number in (30, 60, 300, 900, 1800, 3600, 86_400) for unit in (1, 1000)),
)


Number = int | Fraction


@dataclass(frozen=True)
class Granularity:
    """Values are ``offset`` plus a multiple of ``step``. Times are counted in nanoseconds.

    >>> prices = Granularity(Fraction(1), Fraction("0.99"))
    >>> float(prices.nearest(Fraction("3.2"), (0, 0), (9, 0)))
    2.99
    """

    step: Fraction
    offset: Fraction = Fraction(0)

    def nearest(self, key: Any, low: tuple[Any, int], high: tuple[Any, int]) -> Fraction | None:
        """The value nearest to ``key`` between two cuts, each just before a key (0) or just after it (1), if any."""
        step, offset = self._numbers
        least, most, key = (_exact(number) - offset for number in (low[0], high[0], key))
        first = least // step + 1 if low[1] else -(-least // step)
        last = most // step if high[1] else -(-most // step) - 1
        if first > last:
            return None
        return Fraction(offset + step * min(max((2 * key + step) // (2 * step), first), last))

    def common(self, other: Granularity | None) -> Granularity | None:
        """What the values of both keep to.

        >>> Granularity(Fraction(10)).common(Granularity(Fraction(20), Fraction(5)))
        Granularity(step=Fraction(5, 1), offset=Fraction(0, 1))
        """
        if other is None:
            return None
        numbers = [self.step, other.step, abs(self.offset - other.offset)]
        parts = math.lcm(*(number.denominator for number in numbers))
        step = Fraction(math.gcd(*(int(number * parts) for number in numbers)), parts)
        return Granularity(step, self.offset % step)

    def to_json(self) -> dict[str, str]:
        """Plain data for the model file."""
        return {"step": str(self.step), "offset": str(self.offset)}

    @classmethod
    def from_json(cls, data: Any) -> Granularity:
        """The granularity that :meth:`to_json` wrote."""
        return cls(Fraction(data["step"]), Fraction(data["offset"]))

    @cached_property
    def _numbers(self) -> tuple[Number, Number]:
        return _whole(self.step), _whole(self.offset)


def _whole(number: Fraction) -> Number:
    """Whole numbers are much faster."""
    return number.numerator if number.denominator == 1 else number


def _exact(key: Any) -> Number:
    return key if isinstance(key, int) else Fraction(key)


def read_granularity(source: Source, values: str, kind: str) -> Granularity | None:
    """The coarsest step that nearly all rows keep to; ``values`` lists values of type ``kind`` and the rows ``n``."""
    if kind in FLOATS:
        decimals = _decimals(source, values, kind)
        if decimals is None:
            return None
        scaled = f"round(CAST(value AS DOUBLE) * 1e{decimals})"
        whole = f"CASE WHEN abs({scaled}) < {EXACT_FLOAT} THEN CAST({scaled} AS BIGINT) END"
        return _multiples(source, values, whole, Fraction(1, 10**decimals), ROUND_NUMBERS)
    if kind in INTEGERS:
        return _multiples(source, values, "TRY_CAST(value AS BIGINT)", Fraction(1), ROUND_NUMBERS)
    if DECIMAL.fullmatch(kind):
        digits = int(kind.rstrip(")").split(",")[1])
        whole = "TRY_CAST(replace(CAST(value AS VARCHAR), '.', '') AS BIGINT)"
        return _multiples(source, values, whole, Fraction(1, 10**digits), ROUND_NUMBERS)
    if kind == "TIME" or kind.startswith("TIMESTAMP"):
        return _multiples(source, values, "epoch_us(value)", Fraction(1000), PARTS_OF_A_DAY)
    return None  # dates are whole days, and strings have no steps


def _decimals(source: Source, values: str, kind: str) -> int | None:
    """How many decimals nearly all floating-point numbers have."""
    places = range(MOST_DECIMALS + 1)
    rounded = (f"CAST(round(CAST(value AS DOUBLE), {place}) AS {kind}) = value" for place in places)
    shares = _shares(source, values, list(rounded))
    return next((place for place in places if shares[place] >= OBEY), None)


def _multiples(source: Source, values: str, whole: str, unit: Fraction, steps: tuple[int, ...]) -> Granularity | None:
    """The greatest of ``steps`` that most values keep to: ``whole`` is SQL for one as a whole number of units."""
    # Any value that nearly all others agree with will do as the first; the median is none of the odd ones at the ends.
    ((anchor,),) = source.rows(f"SELECT quantile_disc({whole}, 0.5) FROM {values}")
    if anchor is None:
        return None
    tests = [f"(({whole}) % {step} + {step}) % {step} = {int(anchor) % step}" for step in steps]
    kept = [step for step, share in zip(steps, _shares(source, values, tests), strict=True) if share >= OBEY]
    return Granularity(max(kept) * unit, int(anchor) % max(kept) * unit) if kept else None


def _shares(source: Source, values: str, tests: list[str]) -> list[float]:
    """The share of the rows for which each of ``tests`` is true."""
    sums = ", ".join(f"coalesce(sum(n) FILTER ({test}), 0)" for test in tests)
    ((rows, *found),) = source.rows(f"SELECT coalesce(sum(n), 0), {sums} FROM {values}")
    return [float(count) / max(1.0, float(rows)) for count in found]
