"""The granularity of a column's values: whole minutes, two decimals, multiples of 50.

A grid stores only some values of its column. Values between them are drawn at random, and must look like real ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from countless.cached_property import cached_property

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
        """The value nearest to ``key`` between two cuts, if any; a cut is just before (0) or after (1) a key."""
        step, offset = self._step_and_offset
        least, most, key = (_exact(number) - offset for number in (low[0], high[0], key))
        first = least // step + 1 if low[1] else -(-least // step)
        last = most // step if high[1] else -(-most // step) - 1
        if first > last:
            return None
        return Fraction(offset + step * min(max((2 * key + step) // (2 * step), first), last))

    def common(self, other: Granularity | None) -> Granularity | None:
        """The coarsest granularity that the values of both have.

        >>> Granularity(Fraction(10)).common(Granularity(Fraction(20), Fraction(5)))
        Granularity(step=Fraction(5, 1), offset=Fraction(0, 1))
        """
        if other is None:
            return None
        numbers = [self.step, other.step, abs(self.offset - other.offset)]
        denominator = math.lcm(*(number.denominator for number in numbers))
        step = Fraction(math.gcd(*(int(number * denominator) for number in numbers)), denominator)
        return Granularity(step, self.offset % step)

    def to_json(self) -> dict[str, str]:
        """Plain data for the model file."""
        return {"step": str(self.step), "offset": str(self.offset)}

    @classmethod
    def from_json(cls, data: Any) -> Granularity:
        """The granularity that :meth:`to_json` wrote."""
        return cls(Fraction(data["step"]), Fraction(data["offset"]))

    @cached_property
    def _step_and_offset(self) -> tuple[Number, Number]:
        return _as_int(self.step), _as_int(self.offset)


def _as_int(number: Fraction) -> Number:
    """An int if the number is whole: arithmetic with ints is much faster."""
    return number.numerator if number.denominator == 1 else number


def _exact(key: Any) -> Number:
    return key if isinstance(key, int) else Fraction(key)
