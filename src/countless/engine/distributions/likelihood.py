"""Likelihoods of rows, and the conditional distribution of a column given all other columns of its row.

A row has a symbol for each position, MASK (symbol ``sizes[p]``) where the value is unknown. A model has no conditional
of a column given *later* columns in the order, so Bayes' rule is used: each possible code of the column, a *candidate*,
is inserted and the rest of the row is read. The candidate's weight is the likelihood of that rest.

A model of several orders is their mixture, as it is for densities: the probability of a row, also of a row with a
candidate inserted, is the mean over the orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.engine.columns.runtime import Runtime
from countless.engine.distributions.completion import Completions, Scored, mixture
from countless.engine.distributions.row_reader import RowReader, present, slices

ROWS = 256  # rows that are read together: their units should fit a cache
PARTICLES = 512  # candidates that are read together
ALL = 64  # of a column with at most this number of codes, every code is a candidate
MOST = 256  # otherwise the limit of candidates (or leading digits) of a row
MASS = 0.999  # only the likeliest candidates are used, which have this share of the mass
NOBODY = -1  # no code


def log_probabilities(runtime: Runtime[Any], symbols: IntArray) -> FloatArray:
    """For rows of symbols (N, positions), the log-probability of each symbol given those before it in the order.

    It is 0 where the symbol is MASK.
    """
    logs = np.zeros(symbols.shape)
    for batch in slices(len(symbols), ROWS):
        rows = symbols[batch]
        reader = RowReader.of(runtime, len(rows))
        for position in present(runtime, rows):
            logs[batch, position] = reader.log_probabilities(position, rows[:, position])
            reader.read(position, rows[:, position])
    return logs


def row_log_probabilities(orders: Sequence[Runtime[Any]], symbols: IntArray) -> FloatArray:
    """The log-probability of each row of symbols (N, positions). MASKed positions are left out."""
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
    """The probability of each code of a column, given all known symbols of its row, before or after it in the order.

    ``positions`` are those of the column; ``symbols`` (N, positions) are ignored there. Codes from ``count`` on are
    left out. If a column has more than ALL codes, only the likeliest are candidates, and the code of each row in
    ``also``. The likeliest are chosen given what comes before the column, and for leading digits also given what comes
    after it.
    """
    symbols = symbols.copy()
    symbols[:, list(positions)] = np.array(orders[0].sizes)[list(positions)]
    also = np.full(len(symbols), NOBODY) if also is None else also
    batch_size = max(1, min(ROWS, PARTICLES // min(count, MOST)))
    return Completions.joined(
        [
            mixture(
                [
                    _Column(runtime, symbols[batch], positions, count, also[batch]).scored(weighed=len(orders) > 1)
                    for runtime in orders
                ]
            )
            for batch in slices(len(symbols), batch_size)
        ]
    )


class _Column:
    """The candidates of a column in a batch of rows, under one order."""

    def __init__(
        self, runtime: Runtime[Any], symbols: IntArray, positions: Sequence[int], count: int, also: IntArray
    ) -> None:
        self.runtime, self.symbols, self.positions = runtime, symbols, positions
        self.count, self.also = count, also
        known_positions = present(runtime, symbols)
        rank = runtime.order.index(positions[0])
        self.before = [position for position in known_positions if runtime.order.index(position) < rank]
        self.after = [position for position in known_positions if runtime.order.index(position) > rank]

    def scored(self, weighed: bool) -> Scored:
        """The candidates of every row. If ``weighed``, their scores include what comes before the column."""
        reader = RowReader.of(self.runtime, len(self.symbols))
        constants = np.zeros(len(self.symbols))
        for position in self.before:
            if weighed:
                constants += reader.log_probabilities(position, self.symbols[:, position])
            reader.read(position, self.symbols[:, position])
        rows = np.arange(len(self.symbols))
        codes, priors, later_logs = np.zeros_like(rows), np.zeros(len(rows)), np.zeros(len(rows))
        kept_shares = np.ones(len(rows))
        for position in self.positions:
            logs = priors[:, None] + reader.log_distribution(position)  # (beams, size)
            children = codes[:, None] * logs.shape[1] + np.arange(logs.shape[1])
            keep = self._children_to_keep(position, rows, children, logs, logs + later_logs[:, None], kept_shares)
            beams, digits = np.nonzero(keep)
            rows, codes, priors, later_logs = rows[beams], children[keep], logs[keep], later_logs[beams]
            if self.after or position != self.positions[-1]:
                reader = reader.branched(beams)
                reader.read(position, digits)
                later_logs = self._later_log_probabilities(reader.branched(np.arange(len(rows))), rows)
        return Scored(rows, codes, constants[rows] + priors + later_logs, kept_shares)

    def _children_to_keep(
        self,
        position: int,
        rows: IntArray,
        children: IntArray,
        logs: FloatArray,
        weights: FloatArray,
        kept_shares: FloatArray,
    ) -> BoolArray:
        """Which of the children (beams, size) to keep. Multiplies ``kept_shares`` by their share of the mass."""
        digit = list(self.positions).index(position)
        codes_per_symbol = int(np.prod([self.runtime.sizes[lower] for lower in self.positions[digit + 1 :]]))
        exists: BoolArray = children * codes_per_symbol < self.count
        if self.count <= ALL or (len(self.positions) == 1 and not self.after):
            return exists
        keep = exists & _heaviest(rows, np.where(exists, weights, -np.inf), len(kept_shares))
        also_codes = self.also[rows] // codes_per_symbol
        keep |= exists & (children == also_codes[:, None]) & (self.also[rows] >= 0)[:, None]
        masses = np.exp(logs)
        total_masses = np.bincount(rows, (masses * exists).sum(axis=1), minlength=len(kept_shares))
        kept_shares *= np.bincount(rows, (masses * keep).sum(axis=1), minlength=len(kept_shares)) / total_masses
        return keep

    def _later_log_probabilities(self, reader: RowReader, rows: IntArray) -> FloatArray:
        """The log-probability of the known symbols after the column, for each candidate."""
        logs = np.zeros(len(rows))
        for position in self.after:
            symbols = self.symbols[rows, position]
            logs += reader.log_probabilities(position, symbols)
            if position != self.after[-1]:
                reader.read(position, symbols)
        return logs


def _heaviest(rows: IntArray, weights: FloatArray, count: int) -> BoolArray:
    """The heaviest children (beams, size) of every row: as many as have MASS together, but at most MOST.

    ``rows`` has the row of each beam, and ``weights`` are logarithms.
    """
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, rows, weights.max(axis=1))
    masses = np.exp(weights - highest[rows, None])
    totals = np.bincount(rows, masses.sum(axis=1), minlength=count)
    masses /= totals[rows, None]
    children_per_row = np.bincount(rows, minlength=count)[rows, None] * weights.shape[1]
    is_candidate = masses >= (1 - MASS) / children_per_row  # the lighter ones together have less than 1 - MASS
    beams, symbols = np.nonzero(is_candidate)
    owners, heavy = rows[beams], masses[beams, symbols]
    order = np.lexsort((symbols, beams, -heavy, owners))
    owners, heavy = owners[order], heavy[order]
    starts = np.searchsorted(owners, np.arange(count))
    ranks = np.arange(len(owners)) - starts[owners]
    sums = np.concatenate([[0.0], np.cumsum(heavy)])
    above = sums[:-1] - sums[starts[owners]]  # the mass of the row's heavier children
    kept_order = order[(ranks < MOST) & (above < MASS)]
    keep = np.zeros(weights.shape, dtype=np.bool_)
    keep[beams[kept_order], symbols[kept_order]] = True
    return keep
