"""A row reader: a model reads many rows, each with its own symbols, position by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.engine.columns.runtime import Logits, Runtime


class RowReader:
    """Rows as far as they were read. ``owners`` has the particle of each: rows that begin alike may share one."""

    def __init__(self, runtime: Runtime[Any], owners: IntArray, state: Any) -> None:
        self.runtime, self.owners, self.state = runtime, owners, state
        self._alone = False  # whether each row has a particle to itself, in order, that nobody else reads

    @classmethod
    def of(cls, runtime: Runtime[Any], rows: int) -> RowReader:
        """So many rows of which nothing has been read."""
        return cls(runtime, np.zeros(rows, dtype=np.int64), runtime.start())

    def log_distribution(self, position: int) -> Logits:
        """Log-probabilities (rows, size) of the symbols at ``position``."""
        logits = self.runtime.logits(self.state, position)
        logs: Logits = (logits - log_sums(logits)[:, None])[self.owners]
        return logs

    def log_probabilities(self, position: int, symbols: IntArray) -> FloatArray:
        """The log-probability of each row's symbol at ``position``; 0 where that is MASK."""
        logits = self.runtime.logits(self.state, position)
        present = np.flatnonzero(symbols < logits.shape[1])
        owners = self.owners[present]
        logs = np.zeros(len(symbols))
        logs[present] = logits[owners, symbols[present]] - log_sums(logits)[owners]
        return logs

    def read(self, position: int, symbols: IntArray) -> None:
        """Go on with each row's symbol."""
        if self._alone:
            self.state = self.runtime.follow(self.state, position, symbols)
        else:
            self.state = self.runtime.advance(self.state, self.owners, position, symbols)
            self.owners, self._alone = np.arange(len(symbols)), True

    def branched(self, parents: IntArray) -> RowReader:
        """Rows that go on from where the rows ``parents`` are. These must not read on."""
        return RowReader(self.runtime, self.owners[parents], self.state)


def log_sums(logits: Logits) -> FloatArray:
    """The logarithm of the sum of exponentials in each row."""
    most = logits.max(axis=1)
    sums = np.exp(logits - most[:, None]).sum(axis=1, dtype=np.float64)
    sums_of_logs: FloatArray = most + np.log(sums)
    return sums_of_logs


def present(runtime: Runtime[Any], symbols: IntArray) -> list[int]:
    """The positions at which any row (N, positions) has a symbol that is not MASK, in the model's order."""
    known: BoolArray = np.any(symbols < np.array(runtime.sizes), axis=0)
    return [position for position in runtime.order if known[position]]


def pieces(count: int, size: int) -> list[slice]:
    """``count`` things, ``size`` at a time."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]
