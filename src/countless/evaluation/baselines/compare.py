"""A comparison of several estimators on the same queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from countless.errors import CountlessError
from countless.estimator.answers.estimate import Estimate
from countless.evaluation.baselines.base import Baseline
from countless.evaluation.baselines.registry import Material, make
from countless.evaluation.evaluate import Evaluation
from countless.workload import Query

SLOW_QUERIES = 100  # queries for a slow method


@dataclass(frozen=True)
class Compared:
    """The size of one method, and the evaluation of the questions that it could answer.

    ``problem`` says why there is no evaluation, or why some questions have no answer.
    """

    method: str
    asked: int
    bytes: int | None = None
    seconds: float | None = None  # to prepare it
    evaluation: Evaluation | None = None
    problem: str | None = None

    @property
    def answered(self) -> int:
        """The number of answered questions."""
        return 0 if self.evaluation is None else len(self.evaluation.queries)

    def to_json(self) -> dict[str, Any]:
        """Plain data; unknown values are null."""
        evaluation = None if self.evaluation is None else self.evaluation.to_json()
        return {
            "method": self.method,
            "bytes": self.bytes,
            "prepared_seconds": self.seconds,
            **{
                key: None if evaluation is None else evaluation[key]
                for key in ("latency_ms", "q_error", "coverage", "by_class")
            },
            "queries": self.asked,
            "answered": self.answered,
            "problem": self.problem,
        }


def put_to(
    method: str,
    answer: Callable[[str], Estimate],
    queries: Sequence[Query],
    size: int,
    seconds: float | None = None,
    on_query: Callable[[], None] | None = None,
) -> Compared:
    """Ask one method every question. Questions that it cannot answer are left out and counted."""
    answered_queries, estimates, problem = [], [], None
    for number, query in enumerate(queries):
        try:
            if number == 0:
                answer(query.where)  # warm-up: the first answer also builds caches
            estimates.append(answer(query.where))
            answered_queries.append(query)
        except CountlessError as error:
            problem = problem or one_line(error)
        if on_query is not None:
            on_query()
    evaluation = Evaluation(method, tuple(answered_queries), tuple(estimates)) if answered_queries else None
    return Compared(method, len(queries), size, seconds, evaluation, problem)


def compare(
    names: Sequence[str], material: Material, queries: Sequence[Query], on_query: Callable[[], None] | None = None
) -> Iterator[Compared]:
    """Ask each of the baselines the same questions. A baseline that is not available is a problem, not an error."""
    for name in names:
        started = time.perf_counter()
        try:
            baseline = make(name, material)
        except CountlessError as error:
            yield Compared(name, len(queries), problem=one_line(error))
            continue
        seconds = time.perf_counter() - started
        try:
            yield put_to(name, baseline.estimate, _queries_for(baseline, queries), baseline.bytes, seconds, on_query)
        finally:
            baseline.close()


def one_line(error: CountlessError) -> str:
    """An error's message without the marked clause."""
    return str(error).splitlines()[0]


def _queries_for(baseline: Baseline, queries: Sequence[Query]) -> Sequence[Query]:
    return queries[:SLOW_QUERIES] if baseline.slow else queries
