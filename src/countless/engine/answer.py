"""The result of a sampling method for one box, and of a walk that keeps its particles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.columns.thinning import THINNING_POWER
from countless.region import Box


@dataclass(frozen=True)
class Answer:
    """A density, and how it was found.

    ``exact`` says that it is the model's own density, with no sampling error. ``particles`` is the largest number
    of particles (or samples) held at once, 0 if counts alone gave the answer; ``forward_rows`` the rows of logits
    computed in all. ``sampling_error`` is the relative standard error that sampling adds, where it is known. ``texts``
    are the text columns that were asked, in ``contexts`` rows of the others. ``counted`` says that the density is the
    table's own, from rows that were counted. ``steps`` is how many counts of substrings were chained to estimate that
    of a text.

    By counts beside the model, the table's own density is between ``least`` and ``most``. The model's answer was
    multiplied by ``factor``, because of the columns ``corrected``, and is no larger than the rows of the columns
    ``clipped``: it had ``excess`` times the rows that the bounds left.
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
    """Rows that a walk has ended with: ``symbols`` (rows, positions), MASK where nothing was read, and ``masses``.

    The masses add up to the density of what was asked. ``exact`` says that nothing was thinned.
    """

    symbols: IntArray
    masses: FloatArray
    exact: bool
    forward_rows: int

    def some(self, chosen: IntArray, masses: FloatArray, exact: bool) -> Traced:
        """Some of the rows, with other masses."""
        return Traced(self.symbols[chosen], masses, self.exact and exact, self.forward_rows)


@dataclass(frozen=True)
class Trace:
    """What to ask: a box, and what of its rows matters.

    Particles that differ at a position in ``labels`` are thinned apart, so that light values keep particles too. Before
    the first such position is read, there are at most ``unlabelled`` particles, if that is given. With
    ``expand`` the last position is told as well; else its symbols are summed. If ``scattered``, particles are nearly
    independent of each other, as rows to be drawn should be; else sums over them are nearer to the truth.
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
        """Whether the symbols of the ``last`` position are told."""
        return self.expand or last in self.labels


def unrolled(levels: Sequence[tuple[int, IntArray, IntArray]], count: int, sizes: Sequence[int]) -> IntArray:
    """The symbols (rows, positions) of the ``count`` particles at the last level.

    Each level has the position that was read, and for each particle the place of its parent and the symbol.
    """
    symbols = np.tile(np.array(sizes, dtype=np.int64), (count, 1))
    particles = np.arange(count)
    for position, parents, symbols_read in reversed(levels):
        symbols[:, position] = symbols_read[particles]
        particles = parents[particles]
    return symbols


@dataclass(frozen=True, eq=False)
class Effort:
    """How many particles a walk takes: at first ``budget``, with the random numbers ``offsets``.

    If its sampling error is above ``target``, it is repeated with up to ``most``, and the numbers ``again``.
    """

    budget: int
    most: int
    target: float
    offsets: FloatArray
    again: FloatArray


# A part of a question: its filters, their density in the table and by the model, and how many rows of logits that took.
PartDensity = tuple[tuple[int, ...], float, float, int]
