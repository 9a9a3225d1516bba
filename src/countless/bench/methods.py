"""What a user could do to learn a count, each as one function from a clause to an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless.baselines.row_sample import RowSample
from countless.data.source import Source
from countless.data.table import EncodeOptions, Table
from countless.estimator.estimate import Estimate
from countless.estimator.estimator import Estimator

PARTICLES, MANY = "particles", "estimate_many"


@dataclass(frozen=True)
class Contender:
    """A way to answer: a quick one is asked several times, a slow one only the first few queries."""

    name: str
    answer: Callable[[str], Estimate]
    quick: bool = False
    slow: bool = False


def contenders(estimator: Estimator, table: Any) -> list[Contender]:
    """The default method first, then the paper's samplers as they are, a scan, and a sample of the rows."""

    def sampler(method: str, samples: int) -> Callable[[str], Estimate]:
        return lambda where: estimator.estimate(where, method=method, particles=samples)

    sample = RowSample(Table.encode(table, EncodeOptions(columns=estimator.columns)))
    return [
        Contender(PARTICLES, estimator.estimate, quick=True),
        Contender("skipping-100", sampler("plain-skipping", 100)),
        Contender("skipping-1000", sampler("plain-skipping", 1000), slow=True),
        Contender("progressive-100", sampler("plain-progressive", 100), slow=True),
        Contender("progressive-1000", sampler("plain-progressive", 1000), slow=True),
        Contender("duckdb", Scan(table).estimate),
        Contender("row-sample-1%", sample.estimate, quick=True),
    ]


class Scan:
    """DuckDB's exact count, read from the table's own file each time."""

    def __init__(self, table: str | Path) -> None:
        self._source = Source.open(table)
        self._rows = self._source.count()

    def estimate(self, where: str) -> Estimate:
        """The true count."""
        started = time.perf_counter()
        (rows,) = self._source.counts([where])
        return Estimate(
            where=where,
            rows=rows,
            selectivity=rows / self._rows,
            low=rows,
            high=rows,
            level=1.0,
            method="duckdb",
            exact=True,
            ms=(time.perf_counter() - started) * 1e3,
        )
