"""A compiled clause: its region, and what ``explain`` shows of it."""

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
    values: int | None  # number that satisfy it, NULL included; approximate with a grid; None for a text column
    of: int  # number of values of the column, NULL included
    how: str  # "search", "duckdb"; for a grid "interpolation", "knots"; of a text column "automaton"
    unseen: tuple[str, ...]  # literals of = and IN that the column does not hold
    cells: int | None = None  # of the column's grid, if it has one
    equality: bool = False  # whether it looks for single values of a grid: their counts are means of a cell
    states: int | None = None  # of the automaton that reads the column's strings, if it is a text column


@record(eq=True)
class Question:
    """A compiled clause: its text, its region, and its parsed condition.

    It is not ``certain`` if a predicate was evaluated only at a grid's knots, or if it depends on unknown letters.
    ``beyond`` are the filters that only evidence rows can answer, and ``among`` marks the evidence rows that satisfy
    them; the region has all other filters. ``whole`` compiles the clause again as a whole: it is set for a question
    that was put together from cached filters, and so has no parsed condition.
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
        """The clause as an expression; None for every row."""
        return self.parsed if self._compiled_whole is None else self._compiled_whole.condition

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons of the clause, as ``explain`` shows them. Computed on first access."""
        if self._compiled_whole is not None:
            return self._compiled_whole.comparisons
        return tuple(detail() for detail in self.details)

    @cached_property
    def _compiled_whole(self) -> Question | None:
        """The clause compiled as a whole, if this question was put together from its filters."""
        return None if self.whole is None else self.whole()
