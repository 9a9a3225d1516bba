"""The baseline of a row sample in DuckDB, which supports every clause, also on text."""

from __future__ import annotations

import time
from typing import Any

from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate
from countless.evaluation.baselines.base import Baseline, answered, value_bytes
from countless.evaluation.baselines.row_sample import wilson


class SampleScan(Baseline):
    """The share of matching rows in a sample that is kept in memory, with Wilson's interval around it."""

    method = "row-sample"

    def __init__(self, table: Any, share: float = 0.01, seed: int = 0) -> None:
        source = Source.open(table)
        self.rows = source.count()
        self.size = max(1, round(self.rows * share))
        self._sample = source.sampled(self.size, seed)
        self.bytes = value_bytes(self._sample)

    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""
        started = time.perf_counter()
        (hits,) = self._sample.counts([where])
        return answered(self.method, where, self.rows, wilson(hits / self.size, self.size), started)
