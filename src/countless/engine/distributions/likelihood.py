"""Likelihoods of given rows, and the conditional distribution of one column given all others.

A row is a symbol for each position, MASK (symbol ``sizes[p]``) where nothing is known. A model has no conditional of a
column on what comes *after* it in the order, so that is found by Bayes' rule: each code that the column may have, a
*candidate*, is put in its place and the row is read on; how likely the rest of the row then is weighs the candidate.

A model of several orders is the mixture of them, as it is for densities: the probability of a row is the mean over the
orders, and so is that of a row with a candidate in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.engine.columns.runtime import Runtime
from countless.engine.distributions.completion import Completions, Scored, mixture
from countless.engine.distributions.row_reader import RowReader, pieces, present

ROWS = 256  # rows that are read together: their units should fit a cache
PARTICLES = 512  # candidates that are read together
ALL = 64  # of a column with no more codes, each is a candidate
MOST = 256  # candidates of a row otherwise, and leading digits
MASS = 0.999  # of a row's candidates the likeliest are enough that have this share
NOBODY = -1  # no code


def log_probabilities(runtime: Runtime[Any], symbols: IntArray) -> FloatArray:
    """For rows of symbols (N, positions), the log-probability of each symbol given those before it in the order.

    Where there is MASK it is 0.
    """
    logs = np.zeros(symbols.shape)
    for piece in pieces(len(symbols), ROWS):
        rows = symbols[piece]
        reading = RowReader.of(runtime, len(rows))
        for position in present(runtime, rows):
            logs[piece, position] = reading.log_probabilities(position, rows[:, position])
            reading.read(position, rows[:, position])
    return logs


def row_log_probabilities(orders: Sequence[Runtime[Any]], symbols: IntArray) -> FloatArray:
    """The log-probability of each row of symbols (N, positions); what is MASK is left out."""
    logs = np.stack([log_probabilities(runtime, symbols).sum(axis=1) for runtime in orders])  # (orders, N)
    mean: FloatArray = np.logaddexp.reduce(logs, axis=0) - np.log(len(orders))
    return mean


def completions(
    orders: Sequence[Runtime[Any]],
    symbols: IntArray,
    positions: Sequence[int],
    count: int,
    also: IntArray | None = None,
) -> Completions:
    """How likely each code of a column is, given all that is present in its row, before or after it in the order.

    ``positions`` are the column's; what ``symbols`` (N, positions) have there makes no difference. Codes from ``count``
    on are left out. Of a column of more than ALL codes the likeliest are considered, as far as what comes before the
    column tells, and of leading digits also what comes after it; and the code of each row in ``also``.
    """
    symbols = symbols.copy()
    symbols[:, list(positions)] = np.array(orders[0].sizes)[list(positions)]
    also = np.full(len(symbols), NOBODY) if also is None else also
    size = max(1, min(ROWS, PARTICLES // min(count, MOST)))
    return Completions.joined(
        [
            mixture(
                [
                    _Column(runtime, symbols[piece], positions, count, also[piece]).scored(weighed=len(orders) > 1)
                    for runtime in orders
                ]
            )
            for piece in pieces(len(symbols), size)
        ]
    )


class _Column:
    """A column of some rows under one order."""

    def __init__(
        self, runtime: Runtime[Any], symbols: IntArray, positions: Sequence[int], count: int, also: IntArray
    ) -> None:
        self.runtime, self.symbols, self.positions = runtime, symbols, positions
        self.count, self.also = count, also
        positions_present = present(runtime, symbols)
        rank = runtime.order.index(positions[0])
        self.before = [position for position in positions_present if runtime.order.index(position) < rank]
        self.after = [position for position in positions_present if runtime.order.index(position) > rank]

    def scored(self, weighed: bool) -> Scored:
        """The candidates of every row; if ``weighed``, what comes before the column counts too."""
        reading = RowReader.of(self.runtime, len(self.symbols))
        constants = np.zeros(len(self.symbols))
        for position in self.before:
            if weighed:
                constants += reading.log_probabilities(position, self.symbols[:, position])
            reading.read(position, self.symbols[:, position])
        rows = np.arange(len(self.symbols))
        codes, priors, later = np.zeros_like(rows), np.zeros(len(rows)), np.zeros(len(rows))
        kept_shares = np.ones(len(rows))
        for position in self.positions:
            logs = priors[:, None] + reading.log_distribution(position)  # (beams, size)
            children = codes[:, None] * logs.shape[1] + np.arange(logs.shape[1])
            keep = self._chosen(position, rows, children, logs, logs + later[:, None], kept_shares)
            beams, digits = np.nonzero(keep)
            rows, codes, priors, later = rows[beams], children[keep], logs[keep], later[beams]
            if self.after or position != self.positions[-1]:
                reading = reading.branched(beams)
                reading.read(position, digits)
                later = self._later(reading.branched(np.arange(len(rows))), rows)
        return Scored(rows, codes, constants[rows] + priors + later, kept_shares)

    def _chosen(
        self,
        position: int,
        rows: IntArray,
        children: IntArray,
        logs: FloatArray,
        weights: FloatArray,
        kept_shares: FloatArray,
    ) -> BoolArray:
        """Which of the children (beams, size) to go on with; of ``kept`` remains what share they have."""
        digit = list(self.positions).index(position)
        below = int(np.prod([self.runtime.sizes[later] for later in self.positions[digit + 1 :]]))
        exists: BoolArray = children * below < self.count
        if self.count <= ALL or (len(self.positions) == 1 and not self.after):
            return exists
        chosen = exists & _thinned(rows, np.where(exists, weights, -np.inf), len(kept_shares))
        also_codes = self.also[rows] // below
        chosen |= exists & (children == also_codes[:, None]) & (self.also[rows] >= 0)[:, None]
        masses = np.exp(logs)
        everything = np.bincount(rows, (masses * exists).sum(axis=1), minlength=len(kept_shares))
        kept_shares *= np.bincount(rows, (masses * chosen).sum(axis=1), minlength=len(kept_shares)) / everything
        return chosen

    def _later(self, reading: RowReader, rows: IntArray) -> FloatArray:
        """The log-probability of what each candidate's row has after the column."""
        logs = np.zeros(len(rows))
        for position in self.after:
            symbols = self.symbols[rows, position]
            logs += reading.log_probabilities(position, symbols)
            if position != self.after[-1]:
                reading.read(position, symbols)
        return logs


def _thinned(rows: IntArray, weights: FloatArray, count: int) -> BoolArray:
    """Of the children (beams, size) the heaviest of every row: as many as have MASS, but at most MOST.

    ``rows`` has the row of each beam, and ``weights`` are logarithms.
    """
    most = np.full(count, -np.inf)
    np.maximum.at(most, rows, weights.max(axis=1))
    masses = np.exp(weights - most[rows, None])
    totals = np.bincount(rows, masses.sum(axis=1), minlength=count)
    masses /= totals[rows, None]
    each = np.bincount(rows, minlength=count)[rows, None] * weights.shape[1]
    beams, symbols = np.nonzero(masses >= (1 - MASS) / each)  # all the others together have less than 1 - MASS
    owners, heavy = rows[beams], masses[beams, symbols]
    order = np.lexsort((symbols, beams, -heavy, owners))
    owners, heavy = owners[order], heavy[order]
    starts = np.searchsorted(owners, np.arange(count))
    ranks = np.arange(len(owners)) - starts[owners]
    sums = np.concatenate([[0.0], np.cumsum(heavy)])
    above = sums[:-1] - sums[starts[owners]]  # what heavier ones of the row have
    good = order[(ranks < MOST) & (above < MASS)]
    chosen = np.zeros(weights.shape, dtype=np.bool_)
    chosen[beams[good], symbols[good]] = True
    return chosen
