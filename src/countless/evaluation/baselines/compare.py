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

SLOW_QUERIES = 100  # that a slow method is asked


@dataclass(frozen=True)
class Compared:
    """What one method keeps, and what it made of the questions that it could answer.

    ``problem`` says why there is no evaluation, or why of some questions there is no answer.
    """

    method: str
    asked: int
    bytes: int | None = None
    seconds: float | None = None  # to prepare it
    evaluation: Evaluation | None = None
    problem: str | None = None

    @property
    def answered(self) -> int:
        """How many questions it answered."""
        return 0 if self.evaluation is None else len(self.evaluation.queries)

    def to_json(self) -> dict[str, Any]:
        """The same as plain data; what is not known is null."""
        found = None if self.evaluation is None else self.evaluation.to_json()
        return {
            "method": self.method,
            "bytes": self.bytes,
            "prepared_seconds": self.seconds,
            **{key: None if found is None else found[key] for key in ("latency_ms", "q_error", "coverage", "by_class")},
            "queries": self.asked,
            "answered": self.answered,
            "problem": self.problem,
        }


def put_to(
    method: str,
    answer: Callable[[str], Estimate],
    queries: Sequence[Query],
    kept: int,
    seconds: float | None = None,
    on_query: Callable[[], None] | None = None,
) -> Compared:
    """Every question put to one method. What it cannot answer is left out, and counted."""
    asked, estimates, problem = [], [], None
    for number, query in enumerate(queries):
        try:
            if number == 0:
                answer(query.where)  # the first answer pays for what is made once
            estimates.append(answer(query.where))
            asked.append(query)
        except CountlessError as error:
            problem = problem or one_line(error)
        if on_query is not None:
            on_query()
    evaluation = Evaluation(method, tuple(asked), tuple(estimates)) if asked else None
    return Compared(method, len(queries), kept, seconds, evaluation, problem)


def compare(
    names: Sequence[str], material: Material, queries: Sequence[Query], on_query: Callable[[], None] | None = None
) -> Iterator[Compared]:
    """The same questions for each of the baselines in turn. One that cannot be had here is a problem, not an error."""
    for name in names:
        started = time.perf_counter()
        try:
            baseline = make(name, material)
        except CountlessError as error:
            yield Compared(name, len(queries), problem=one_line(error))
            continue
        seconds = time.perf_counter() - started
        try:
            yield put_to(name, baseline.estimate, _asked(baseline, queries), baseline.bytes, seconds, on_query)
        finally:
            baseline.close()


def one_line(error: CountlessError) -> str:
    """What an error says, without the spot in the clause."""
    return str(error).splitlines()[0]


def _asked(baseline: Baseline, queries: Sequence[Query]) -> Sequence[Query]:
    return queries[:SLOW_QUERIES] if baseline.slow else queries
