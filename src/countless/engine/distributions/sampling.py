"""Samples of rows from the column model, restricted to a box.

A walk reads every column, filtered columns under their filters. Its last particles are weighted rows; without filters
the weights are nearly equal. Rows are drawn from them by weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Trace
from countless.engine.columns.trace import traced
from countless.engine.distributions.joint import Axis, with_axes
from countless.engine.fusion.text_in_context import chances, handful
from countless.engine.runtimes import Runtimes
from countless.engine.text.methods import PARTICLES
from countless.errors import NoRowsError
from countless.region import Box

BATCH_ROWS = 512  # rows that are drawn from one walk
BATCH_ROWS_WITH_TEXT = 128  # the same if the box has a text filter
PER_ROW, PER_FILTERED_ROW = 4, 8  # particles for each row, without filters and with filters
LEAST = 512  # particles, at least
CONTEXTS = 32  # rows of a walk in which text is read


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows of symbols (rows, positions), their effective sample size, and whether no particle was thinned out."""

    symbols: IntArray
    effective: float
    exact: bool


def draw_rows(runtimes: Runtimes, box: Box, axes: Sequence[Axis], count: int, rng: np.random.Generator) -> DrawnRows:
    """``count`` rows of ``box``; ``axes`` has all columns of the model."""
    batch = BATCH_ROWS_WITH_TEXT if box.texts else BATCH_ROWS
    sizes = [min(batch, count - start) for start in range(0, count, batch)]
    batches = [_drawn(runtimes, box, axes, size, rng) for size in sizes]
    return DrawnRows(
        np.concatenate([drawn.symbols for drawn in batches]),
        sum(drawn.effective for drawn in batches),
        all(drawn.exact for drawn in batches),
    )


def _drawn(runtimes: Runtimes, box: Box, axes: Sequence[Axis], count: int, rng: np.random.Generator) -> DrawnRows:
    seed = int(rng.integers(2**31))
    all_read = with_axes(Box(box.filters), axes)
    trace = Trace(runtimes.hinted(all_read), scattered=True)
    if not box.filters:
        trace = Trace(all_read, power=1.0, scattered=True)
    particles = max(LEAST, (PER_FILTERED_ROW if box.filters else PER_ROW) * count)
    rows = traced(runtimes.columns, trace, particles, seed)
    if box.texts and rows.masses.sum() > 0:
        rows = handful(rows, CONTEXTS, seed)
        text_chances = chances(runtimes, box.texts, rows.symbols, rows.masses, PARTICLES, None, seed)
        rows = replace(rows, masses=rows.masses * text_chances.values)
    total = float(rows.masses.sum())
    if not total > 0:
        raise NoRowsError("no row that matches was found: the model assigns the condition zero probability")
    shares = rows.masses / total
    indices = systematic(shares, count, rng)
    effective = min(float(count), float(1.0 / (shares**2).sum()))
    return DrawnRows(rows.symbols[indices], effective, rows.exact)


def systematic(shares: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` indices into ``shares``, each about as often as its share, in random order.

    The shares are shuffled first. Otherwise all parents of equal mass would get the child at the same quantile.
    """
    order = rng.permutation(len(shares))
    points = (np.arange(count) + rng.random()) / count * shares.sum()
    drawn = np.minimum(np.searchsorted(np.cumsum(shares[order]), points, side="right"), len(shares) - 1)
    return order[rng.permutation(drawn)]
