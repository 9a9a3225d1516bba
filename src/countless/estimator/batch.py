"""Many questions at once: in groups, which threads answer side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from countless.cancellation import propagate
from countless.engine.density import Density, densities, lacks_network
from countless.engine.methods import METHODS, MODEL_METHOD, uses_evidence
from countless.engine.runtimes import Runtimes
from countless.engine.text.density import UNKNOWN
from countless.errors import CountlessError, NoTextModelError, QueryTypeError
from countless.estimator.answering_model import AnsweringModel
from countless.estimator.answers.counts import estimate_of
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.fused import prior_densities
from countless.estimator.prepared import only_evidence
from countless.query.answer_clock import answer_clock
from countless.query.question import Question

if TYPE_CHECKING:
    from countless.query.predicate import Where

A = TypeVar("A")

# Clauses of a group: so many share one walk. What was made of a group is dropped before the next one, and so it is
# not passed over by every collection of garbage.
MAX_GROUP = 64
MIN_GROUP = 16  # fewer cost more than they save, and are answered without another thread


@dataclass(frozen=True, eq=False)
class Batch:
    """Questions to one model, and how they are answered: by a number of ``particles`` and ``threads``, or None."""

    model: AnsweringModel
    clauses: Sequence[Where]
    particles: int | None = None
    threads: int | None = None
    seed: int | None = None
    summary: bool = True

    def estimates(self, method: str, table_rows: int | None) -> list[Estimate | CountlessError]:
        """The answer to each question, or its error. Each has an equal share of the time that its group took."""
        method = self.model.method(method)
        estimate_group = self._fused_estimates if uses_evidence(method) else self._model_estimates
        return self._in_groups(lambda clauses: estimate_group(clauses, method, table_rows))

    def densities(self) -> list[tuple[Question, Density] | CountlessError]:
        """Each question and its density by the model, or its error."""

        def without_origin(
            answer: tuple[Question, Density] | CountlessError,
        ) -> tuple[Question, Density] | CountlessError:
            if isinstance(answer, CountlessError):
                return answer
            question, density = answer
            return replace(question, parsed=None, details=()), density  # it would fill the memory

        return self._in_groups(lambda clauses: [*map(without_origin, self._densities(clauses, MODEL_METHOD))])

    def _in_groups(self, answer: Callable[[Sequence[Where]], list[A]]) -> list[A]:
        """The answers to all clauses; ``answer`` gives those of a group."""
        clauses, threads = self.clauses, self.threads or os.cpu_count() or 1
        if len(clauses) <= MIN_GROUP:
            return answer(clauses)
        size = min(MAX_GROUP, max(MIN_GROUP, len(clauses) // (2 * threads)))
        groups = [clauses[first : first + size] for first in range(0, len(clauses), size)]
        with ThreadPoolExecutor(threads) as pool:
            return [item for answers in pool.map(propagate(answer), groups) for item in answers]

    def _fused_estimates(
        self, clauses: Sequence[Where], method: str, table_rows: int | None
    ) -> list[Estimate | CountlessError]:
        """The answers by evidence rows and the model."""
        started = answer_clock()
        compiled = list(map(self._compiled, clauses))
        runtimes = self._runtimes.remembering()  # counts of a box are looked up several times
        fusions = [self.model.fusion(runtimes, question) for question in compiled if isinstance(question, Question)]
        priors = prior_densities(runtimes, fusions, self.particles, self._seed)
        ms = _share(started, clauses)
        estimates = (
            fusion.estimate(prior, method, ms, table_rows) for fusion, prior in zip(fusions, priors, strict=True)
        )
        return [next(estimates) if isinstance(question, Question) else question for question in compiled]

    def _model_estimates(
        self, clauses: Sequence[Where], method: str, table_rows: int | None
    ) -> list[Estimate | CountlessError]:
        """The answers by the model alone."""
        started = answer_clock()
        answers = self._densities(clauses, method)
        ms, calibration, rows = _share(started, clauses), self.model.calibration, self.model.schema.rows
        return [
            answer
            if isinstance(answer, CountlessError)
            else only_evidence(answer[0]) or estimate_of(*answer, calibration, rows, method, ms, table_rows)
            for answer in answers
        ]

    def _densities(self, clauses: Sequence[Where], method: str) -> list[tuple[Question, Density] | CountlessError]:
        """Each question of a group and its density, or its error."""
        runtimes = self._runtimes
        questions: list[Question | CountlessError] = [
            NoTextModelError(UNKNOWN)
            if isinstance(question, Question) and method in METHODS and lacks_network(runtimes, question.region, method)
            else question
            for question in map(self._compiled, clauses)
        ]
        regions = [question.region for question in questions if isinstance(question, Question)]
        found = iter(densities(runtimes, regions, method, self.particles, self._seed))
        return [(question, next(found)) if isinstance(question, Question) else question for question in questions]

    def _compiled(self, where: Where) -> Question | CountlessError:
        """The question that a clause asks, or its error."""
        try:
            return self.model.filters.compile(where)
        except CountlessError as error:
            return error

    @property
    def _seed(self) -> int:
        return self.model.seed if self.seed is None else self.seed

    @property
    def _runtimes(self) -> Runtimes:
        return self.model.runtimes if self.summary else self.model.runtimes.without_summaries()


def listed(clauses: Iterable[Where]) -> list[Where]:
    """Several clauses; one alone is an error, though its characters could be listed."""
    from countless.query.predicate import ColumnReference, Predicate

    if isinstance(clauses, str | Predicate | ColumnReference):
        raise QueryTypeError("estimate_many takes a list of clauses: use estimate for one")
    return list(clauses)


def _share(started: float, clauses: Sequence[Where]) -> float:
    """Milliseconds of each clause of a group that was ``started`` then."""
    return (answer_clock() - started) * 1e3 / max(1, len(clauses))
