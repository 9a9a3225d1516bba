"""Samples of rows from the model of the columns, restricted to a box.

A walk reads every column, those that the box asks about as it asks, and its particles at the end are rows with weights:
without a condition nearly equal ones. Rows are drawn from these by weight.
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

AT_ONCE = 512  # rows that are drawn from one walk
AT_ONCE_WITH_TEXT = 128  # if the box asks about text
PER_ROW, PER_RARE_ROW = 4, 8  # particles for each row; if there is a condition, the latter
LEAST = 512  # particles, at least
CONTEXTS = 32  # rows of a walk in which text is read


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows of symbols (rows, positions), how many independent ones they are worth, and whether nothing was thinned."""

    symbols: IntArray
    effective: float
    exact: bool


def draw_rows(runtimes: Runtimes, box: Box, every: Sequence[Axis], count: int, rng: np.random.Generator) -> DrawnRows:
    """``count`` rows of ``box``; ``every`` has all columns of the model."""
    at_once = AT_ONCE_WITH_TEXT if box.texts else AT_ONCE
    sizes = [min(at_once, count - first) for first in range(0, count, at_once)]
    parts = [_drawn(runtimes, box, every, size, rng) for size in sizes]
    return DrawnRows(
        np.concatenate([part.symbols for part in parts]),
        sum(part.effective for part in parts),
        all(part.exact for part in parts),
    )


def _drawn(runtimes: Runtimes, box: Box, every: Sequence[Axis], count: int, rng: np.random.Generator) -> DrawnRows:
    seed = int(rng.integers(2**31))
    listed = with_axes(Box(box.filters), every)
    trace = Trace(runtimes.hinted(listed), scattered=True)
    if not box.filters:
        trace = Trace(listed, power=1.0, scattered=True)
    particles = max(LEAST, (PER_RARE_ROW if box.filters else PER_ROW) * count)
    rows = traced(runtimes.columns, trace, particles, seed)
    if box.texts and rows.masses.sum() > 0:
        rows = handful(rows, CONTEXTS, seed)
        text_chances = chances(runtimes, box.texts, rows.symbols, rows.masses, PARTICLES, None, seed)
        rows = replace(rows, masses=rows.masses * text_chances.values)
    total = float(rows.masses.sum())
    if not total > 0:
        raise NoRowsError("no row that matches was found: the model assigns the condition zero probability")
    shares = rows.masses / total
    chosen = systematic(shares, count, rng)
    effective = min(float(count), float(1.0 / (shares**2).sum()))
    return DrawnRows(rows.symbols[chosen], effective, rows.exact)


def systematic(shares: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` places, each about as often as its share says, in any order.

    They are shuffled first: children of parents of equal mass would all be drawn at the same quantile.
    """
    order = rng.permutation(len(shares))
    points = (np.arange(count) + rng.random()) / count * shares.sum()
    drawn = np.minimum(np.searchsorted(np.cumsum(shares[order]), points, side="right"), len(shares) - 1)
    return order[rng.permutation(drawn)]
