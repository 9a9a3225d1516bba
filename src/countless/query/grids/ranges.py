"""Ranges between cut points of a line, in which a predicate is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from countless.query.grids.scale import Key

if TYPE_CHECKING:
    from sqlglot import exp

Cut = tuple[Key, int]  # just before a key (0) or just after it (1)
Range = tuple[Cut | None, Cut | None]  # from one cut to another; None is the end of the line


@dataclass(frozen=True)
class Ranges:
    """Where a predicate on one column is true."""

    true: tuple[Range, ...]
    false_elsewhere: bool = True  # otherwise the predicate is NULL where it is not true
    of_null: bool | None = None  # the predicate's value for NULL
    points: tuple[tuple[exp.Expr, Key], ...] = ()  # constants of = and IN, with their keys

    def cuts(self) -> set[Cut]:
        """Every cut that is an end of a range."""
        return {cut for ends in self.true for cut in ends if cut is not None}
