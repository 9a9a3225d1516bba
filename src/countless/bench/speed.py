"""Every way to answer, on the same queries, with the same model, in one process.

Latency is the whole of ``estimate()``, reading the SQL included, on one thread. Quick ways answer every query several
times, and a query's latency is the least of them; slow ways answer the first few queries once, and ratios compare both
sides on those few.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countless.bench.methods import MANY, PARTICLES, Contender
from countless.errors import MissingExtraError
from countless.estimator.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.workload import Query

LARGEST_PART = 3  # sub-predicates of up to so many filters, as a query optimizer asks for


@dataclass(frozen=True)
class Options:
    """How much to measure; ``methods`` are those beside particles, None for all."""

    queries: int = 1000  # of each seed
    seeds: int = 1
    repeats: int = 3
    slow_queries: int = 100
    methods: tuple[str, ...] | None = None
    ten_filter_queries: int = 100
    threads: int = 2


@dataclass
class Measured:
    """What one contender did, query by query."""

    name: str
    ms: list[float] = field(default_factory=list)
    q_errors: list[float] = field(default_factory=list)
    forward_rows: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The summary as plain data."""
        facts: dict[str, Any] = {
            "queries": len(self.ms),
            "ms_p50": _percentile(self.ms, 50),
            "ms_p99": _percentile(self.ms, 99),
            "per_second": 1e3 / float(np.mean(self.ms)),
            "q_p50": _percentile(self.q_errors, 50),
            "q_p95": _percentile(self.q_errors, 95),
            "q_p99": _percentile(self.q_errors, 99),
            "q_p99.9": _percentile(self.q_errors, 99.9),
            "q_max": max(self.q_errors),
        }
        if any(self.forward_rows):
            facts["forward_rows"] = float(np.mean(self.forward_rows))
        return facts

    def first(self, count: int) -> Measured:
        """The same for the first queries only."""
        return Measured(self.name, self.ms[:count], self.q_errors[:count], self.forward_rows[:count])


def measure(contender: Contender, queries: Sequence[Query], repeats: int, on_query: Callable[[], None]) -> Measured:
    """Answer every query ``repeats`` times."""
    measured = Measured(contender.name)
    for query in queries:
        answers = [contender.answer(query.where) for _ in range(repeats)]
        measured.ms.append(min(answer.ms for answer in answers))
        measured.q_errors.append(q_error(answers[0].rows, query.rows))
        measured.forward_rows.append(answers[0].forward_rows)
        on_query()
    return measured


def measure_many(estimator: Estimator, queries: Sequence[Query], options: Options) -> Measured:
    """All queries in one call, as often as the options say; the fastest call counts."""
    clauses = [query.where for query in queries]
    seconds, answers = _fastest(
        lambda: estimator.estimate_many(clauses, threads=options.threads, summary=False), max(1, options.repeats)
    )
    errors = [q_error(answer.rows, query.rows) for answer, query in zip(answers, queries, strict=True)]
    rows = [answer.forward_rows for answer in answers]
    return Measured(MANY, [1e3 * seconds / len(clauses)] * len(clauses), errors, rows)


def throughput(estimator: Estimator, clauses: Sequence[str], options: Options) -> dict[str, float]:
    """Clauses per second, one call each and all in one call, taken in turn."""
    loops, batches = [], []
    for _ in range(max(1, options.repeats)):
        loops.append(_fastest(lambda: [estimator.estimate(clause, summary=False) for clause in clauses], 1)[0])
        batches.append(_fastest(lambda: estimator.estimate_many(clauses, threads=options.threads, summary=False), 1)[0])
    loop, batch = min(loops), min(batches)
    return {
        "clauses": len(clauses),
        "loop_per_second": len(clauses) / loop,
        "many_per_second": len(clauses) / batch,
        "ratio": loop / batch,
    }


def sub_predicates(filters: Sequence[str]) -> list[str]:
    """What an optimizer asks about a conjunction: all of it, and every part of up to three filters.

    >>> sub_predicates(["a = 1", "b = 2"])
    ['a = 1', 'b = 2', 'a = 1 AND b = 2']
    """
    sizes = [*range(1, min(LARGEST_PART, len(filters)) + 1)]
    parts = [" AND ".join(part) for size in sizes for part in itertools.combinations(filters, size)]
    whole = " AND ".join(filters)
    return parts if whole in parts else [*parts, whole]


def ratios(measured: dict[str, Measured]) -> dict[str, float]:
    """How each contender compares with ``particles``, on the queries that both answered.

    ``name/particles`` is the ratio of median latencies, ``... q_p99`` that of the q-errors' 99th percentiles.
    """
    own = measured[PARTICLES]
    found = {}
    for name, other in measured.items():
        same = own.first(len(other.ms))
        if name not in (PARTICLES, MANY):
            found[f"{name}/{PARTICLES}"] = _percentile(other.ms, 50) / _percentile(same.ms, 50)
            found[f"{name}/{PARTICLES} q_p99"] = _percentile(other.q_errors, 99) / _percentile(same.q_errors, 99)
    found[f"{PARTICLES} p99/p50"] = _percentile(own.ms, 99) / _percentile(own.ms, 50)
    return found


def one_thread() -> Any:
    """A context in which linear algebra keeps to one core."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtraError("benchmarks need more packages: pip install 'countless[bench]'") from None
    return threadpool_limits(limits=1)


def _fastest(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(repeats):
        started = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - started)
    return best, result


def _percentile(values: Sequence[float], place: float) -> float:
    return float(np.percentile(values, place))
