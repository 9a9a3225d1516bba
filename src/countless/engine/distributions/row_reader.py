"""Reads many rows with a model, each row with its own symbols, position by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.engine.columns.runtime import Logits, Runtime


class RowReader:
    """Rows that a model reads. ``owners`` has the particle of each row: rows with an equal beginning may share one."""

    def __init__(self, runtime: Runtime[Any], owners: IntArray, state: Any) -> None:
        self.runtime, self.owners, self.state = runtime, owners, state
        self._is_exclusive = False  # whether row i has particle i, and no other reader uses the particles

    @classmethod
    def of(cls, runtime: Runtime[Any], rows: int) -> RowReader:
        """A reader of ``rows`` rows, at their beginning."""
        return cls(runtime, np.zeros(rows, dtype=np.int64), runtime.start())

    def log_distribution(self, position: int) -> Logits:
        """Log-probabilities (rows, size) of the symbols at ``position``."""
        logits = self.runtime.logits(self.state, position)
        logs: Logits = (logits - log_sums(logits)[:, None])[self.owners]
        return logs

    def log_probabilities(self, position: int, symbols: IntArray) -> FloatArray:
        """The log-probability of each row's symbol at ``position``; 0 where that is MASK."""
        logits = self.runtime.logits(self.state, position)
        read_rows = np.flatnonzero(symbols < logits.shape[1])
        owners = self.owners[read_rows]
        logs = np.zeros(len(symbols))
        logs[read_rows] = logits[owners, symbols[read_rows]] - log_sums(logits)[owners]
        return logs

    def read(self, position: int, symbols: IntArray) -> None:
        """Read each row's symbol at ``position``."""
        if self._is_exclusive:
            self.state = self.runtime.follow(self.state, position, symbols)
        else:
            self.state = self.runtime.advance(self.state, self.owners, position, symbols)
            self.owners, self._is_exclusive = np.arange(len(symbols)), True

    def branched(self, parents: IntArray) -> RowReader:
        """A reader whose row ``i`` continues row ``parents[i]``. This reader must not read on after that."""
        return RowReader(self.runtime, self.owners[parents], self.state)


def log_sums(logits: Logits) -> FloatArray:
    """The logarithm of the sum of exponentials in each row."""
    most = logits.max(axis=1)
    sums = np.exp(logits - most[:, None]).sum(axis=1, dtype=np.float64)
    log_totals: FloatArray = most + np.log(sums)
    return log_totals


def present(runtime: Runtime[Any], symbols: IntArray) -> list[int]:
    """The positions at which any row (N, positions) has a symbol that is not MASK, in the model's order."""
    is_present: BoolArray = np.any(symbols < np.array(runtime.sizes), axis=0)
    return [position for position in runtime.order if is_present[position]]


def slices(count: int, size: int) -> list[slice]:
    """Slices of at most ``size`` that cover ``count`` items."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]
