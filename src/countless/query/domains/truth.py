"""The truth of a predicate on one column, value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from countless.arrays import BoolArray

Codes = Any  # a set of a column's values: a BoolArray over its codes, or the Language of a text column


@dataclass(frozen=True, eq=False)
class Truth:
    """The values for which a predicate is true, and those for which it is false; for all others it is NULL."""

    true: Codes
    false: Codes


@dataclass(frozen=True, eq=False)
class Observed:
    """A set of values over the model's codes, and the same set over the values of the evidence rows.

    It has the operators of a boolean array, so that formulas combine either.
    """

    model: Codes
    seen: BoolArray

    def __and__(self, other: Observed) -> Observed:
        return Observed(self.model & other.model, self.seen & other.seen)

    def __or__(self, other: Observed) -> Observed:
        return Observed(self.model | other.model, self.seen | other.seen)

    def __invert__(self) -> Observed:
        return Observed(~self.model, ~self.seen)

    def any(self) -> bool:
        """Whether the set can have a value."""
        return bool(self.seen.any() or self.model.any())

    def all(self) -> bool:
        """Whether the set has every value."""
        return bool(self.seen.all() and self.model.all())


def parts_of(codes: Codes) -> tuple[Codes, BoolArray | None]:
    """A set of values over the model's codes, and over the values of the evidence rows if they differ."""
    return (codes.model, codes.seen) if isinstance(codes, Observed) else (codes, None)
