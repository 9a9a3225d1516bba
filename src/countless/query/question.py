"""A clause that has been understood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from countless.arrays import BoolArray
from countless.cached_property import cached_property
from countless.record import record
from countless.region import Region

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Comparison:
    """A predicate on one column, as ``explain`` shows it."""

    column: str
    sql: str
    values: int | None  # how many values satisfy it, NULL counted as one; with a grid, about; None of a text column
    of: int
    how: str  # "search", "duckdb"; for a grid "interpolation", "knots"; of a text column "automaton"
    unseen: tuple[str, ...]  # literals of = and IN that the column does not hold
    cells: int | None = None  # of the column's grid, if it has one
    equality: bool = False  # whether it looks for values whose counts are not known, but for their cell's mean
    states: int | None = None  # of the automaton that reads the column's strings, if it is a text column


@record(eq=True)
class Question:
    """A clause that has been understood: its text, its region, and what it was made from.

    It is not ``certain`` if something was judged by a grid's knots, or by letters that are unknown.
    ``beyond`` are the filters that only evidence rows can answer, and ``among`` marks the rows that satisfy them; the
    region is that of all others. A question that was made without its ``condition`` is compiled ``whole`` for it.
    """

    where: str
    region: Region
    certain: bool = True
    parsed: exp.Expr | None = None
    details: tuple[Callable[[], Comparison], ...] = ()
    beyond: tuple[str, ...] = ()
    among: BoolArray | None = field(default=None, compare=False)
    whole: Callable[[], Question] | None = field(default=None, compare=False)

    @cached_property
    def condition(self) -> exp.Expr | None:
        """The clause as an expression; None of every row."""
        return self.parsed if self._compiled_whole is None else self._compiled_whole.condition

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons of the clause, as ``explain`` shows them: made when they are first asked for."""
        if self._compiled_whole is not None:
            return self._compiled_whole.comparisons
        return tuple(detail() for detail in self.details)

    @cached_property
    def _compiled_whole(self) -> Question | None:
        """The same clause compiled whole, once, if this question was made of its filters."""
        return None if self.whole is None else self.whole()
