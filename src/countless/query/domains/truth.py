"""The truth of a predicate on one column, value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from countless.arrays import BoolArray

Codes = Any  # a set of a column's values: a BoolArray over its codes, or the Language of a text column


@dataclass(frozen=True, eq=False)
class Truth:
    """For each value, and NULL if it occurs: is a predicate true, is it false? If neither, it is NULL."""

    true: Codes
    false: Codes


@dataclass(frozen=True, eq=False)
class Observed:
    """A set of values as the model has it, and which values of the evidence rows are in it.

    It has the algebra of a boolean array, so that the logic of clauses need not know which of the two it combines.
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
        """Whether there can be a value in it."""
        return bool(self.seen.any() or self.model.any())

    def all(self) -> bool:
        """Whether every value is in it."""
        return bool(self.seen.all() and self.model.all())


def parts_of(codes: Codes) -> tuple[Codes, BoolArray | None]:
    """A set of values as the model has it, and as the evidence rows have it, if they have it in another way."""
    return (codes.model, codes.seen) if isinstance(codes, Observed) else (codes, None)
