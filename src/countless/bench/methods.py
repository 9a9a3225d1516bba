"""What a user could do to learn a count, each as one function from a clause to an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from countless.baselines.row_sample import RowSample
from countless.baselines.scan import Scan
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
    """The default method first, on its own, then the paper's samplers as they are, a scan, and a sample of the rows."""

    def sampler(method: str, samples: int) -> Callable[[str], Estimate]:
        return lambda where: estimator.estimate(where, method=method, particles=samples)

    sample = RowSample(Table.encode(table, EncodeOptions(columns=estimator.columns)))
    return [
        Contender(PARTICLES, lambda where: estimator.estimate(where, summary=False), quick=True),
        Contender("skipping-100", sampler("plain-skipping", 100)),
        Contender("skipping-1000", sampler("plain-skipping", 1000), slow=True),
        Contender("progressive-100", sampler("plain-progressive", 100), slow=True),
        Contender("progressive-1000", sampler("plain-progressive", 1000), slow=True),
        Contender("duckdb", Scan(table).estimate),
        Contender("row-sample-1%", sample.estimate, quick=True),
    ]
