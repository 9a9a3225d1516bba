"""Contenders of a contest: ways to answer the same questions, measured one after the other with one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countless.estimator.answers.estimate import Estimate, q_error
from countless.workload import Query
from countless_lab.measurement.requirements import require_lab
from countless_lab.measurement.timer import timed


@dataclass(frozen=True)
class Contender:
    """A way to answer. A quick one is asked several times, a slow one only the first few queries."""

    name: str
    answer: Callable[[str], Estimate]
    quick: bool = False
    slow: bool = False


@dataclass
class Measured:
    """The times and q-errors of one contender, query by query."""

    name: str
    ms: list[float] = field(default_factory=list)
    q_errors: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {
            "queries": len(self.ms),
            "ms_p50": _percentile(self.ms, 50),
            "ms_p99": _percentile(self.ms, 99),
            "q_p50": _percentile(self.q_errors, 50),
            "q_p95": _percentile(self.q_errors, 95),
            "q_p99": _percentile(self.q_errors, 99),
            "q_p99.9": _percentile(self.q_errors, 99.9),
            "q_max": max(self.q_errors),
        }

    def first(self, count: int) -> Measured:
        """The same for the first queries only."""
        return Measured(self.name, self.ms[:count], self.q_errors[:count])


class ContestListener:
    """Receives the progress of the contenders; override what you want to show."""

    def counting(self, queries: int) -> None:
        """The true counts are being computed."""

    def begins(self, name: str, queries: int) -> None:
        """A contender begins."""

    def answered(self) -> None:
        """It has answered a query."""

    def ends(self, measured: Measured) -> None:
        """It is done."""


def measure(contender: Contender, queries: Sequence[Query], repeats: int, on_query: Callable[[], None]) -> Measured:
    """Answer every query ``repeats`` times; a query's time is the least of them."""
    measured = Measured(contender.name)
    for query in queries:
        answers = [timed(lambda: contender.answer(query.where)) for _ in range(repeats)]  # noqa: B023 - called at once
        measured.ms.append(min(ms for _, ms in answers))
        measured.q_errors.append(q_error(answers[0][0].rows, query.rows))
        on_query()
    return measured


def one_thread() -> Any:
    """A context in which linear algebra keeps to one core."""
    require_lab()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def _percentile(values: Sequence[float], percent: float) -> float:
    return float(np.percentile(values, percent))
