"""Answers of sampling methods, the rows that a walk returns, and how many particles a walk may use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.columns.thinning import THINNING_POWER
from countless.record import record
from countless.region import Box


@record(eq=True)
class Answer:
    """A density and how it was computed.

    ``exact`` says that this is exactly the model's density, without sampling error. ``particles`` is the largest number
    of particles (or samples) in memory at once, 0 if counts alone gave the answer. ``visited`` are the positions that
    the walk read, and ``forward_rows`` the rows of logits that were computed in all. ``sampling_error`` is the relative
    standard error that sampling adds, if it is known. ``texts`` are the filtered text columns, and ``contexts`` the
    number of rows of the other columns in which these texts were read. ``counted`` says that the density is the
    table's, from counted rows. ``steps`` is the number of substring counts that were chained to estimate a text filter.

    Counts beside the model say that the table's density is between ``least`` and ``most``. The model's answer was
    multiplied by ``factor``, because counts of the columns ``corrected`` showed an error. It was reduced to the count
    of the columns ``clipped``, because it was ``excess`` times this bound.
    """

    density: float
    exact: bool
    particles: int
    visited: tuple[int, ...]
    forward_rows: int
    sampling_error: float | None = None
    texts: tuple[int, ...] = ()
    counted: bool = False
    least: float = 0.0
    most: float = 1.0
    clipped: tuple[int, ...] = ()
    excess: float = 1.0
    factor: float = 1.0
    corrected: tuple[int, ...] = ()
    contexts: int = 0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Traced:
    """The rows at the end of a walk: ``symbols`` (rows, positions), MASK where nothing was read, and their ``masses``.

    The masses add up to the density of the box. ``exact`` says that no particle was thinned out.
    """

    symbols: IntArray
    masses: FloatArray
    exact: bool
    forward_rows: int

    def some(self, indices: IntArray, masses: FloatArray, exact: bool) -> Traced:
        """The rows at these indices, with new masses."""
        return Traced(self.symbols[indices], masses, self.exact and exact, self.forward_rows)


@dataclass(frozen=True)
class Trace:
    """A request for the weighted rows of a box.

    Particles that differ at a position in ``labels`` are thinned separately, so that rare values keep particles too.
    Before the first such position is read, there are at most ``unlabelled`` particles, if that is given.
    With ``expand`` the rows have a symbol at the last position too; otherwise its symbols are summed. If ``scattered``,
    the particles are nearly independent of each other, as drawn rows should be; otherwise sums over them are more
    accurate. ``power`` is that of :func:`.thin`.
    """

    box: Box
    labels: Collection[int] = ()
    expand: bool = True
    power: float = THINNING_POWER
    scattered: bool = False
    unlabelled: int | None = None

    def budgets(self, positions: Sequence[int], budget: int) -> list[int]:
        """How many particles are kept after each of the ``positions``, if there may be ``budget`` of them."""
        first = next((index for index, position in enumerate(positions) if position in self.labels), len(positions))
        before = budget if self.unlabelled is None else min(budget, self.unlabelled)
        return [before if index < first else budget for index in range(len(positions))]

    def expands(self, last: int) -> bool:
        """Whether the rows have a symbol at the ``last`` position."""
        return self.expand or last in self.labels


def symbol_rows(levels: Sequence[tuple[int, IntArray, IntArray]], count: int, sizes: Sequence[int]) -> IntArray:
    """The symbols (rows, positions) of the ``count`` particles at the last level.

    Each level has the position that was read, and for each particle the index of its parent and its symbol.
    """
    symbols = np.tile(np.array(sizes, dtype=np.int64), (count, 1))
    ancestors = np.arange(count)
    for position, parents, symbols_read in reversed(levels):
        symbols[:, position] = symbols_read[ancestors]
        ancestors = parents[ancestors]
    return symbols


@dataclass(frozen=True, eq=False)
class Effort:
    """How many particles a walk may use: at first ``budget``, with the random numbers ``offsets``.

    If its sampling error is above ``target``, a second walk uses up to ``most``, with the numbers ``retry_offsets``.
    """

    budget: int
    most: int
    target: float
    offsets: FloatArray
    retry_offsets: FloatArray


# A part of a question: its filters, their density in the table and by the model, and how many rows of logits that took.
PartDensity = tuple[tuple[int, ...], float, float, int]
