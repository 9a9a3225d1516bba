"""Many questions at once: compiled while others are walked, and walked together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from countless.engine.density import Density, densities, lacks_network
from countless.engine.methods import METHODS, MODEL_METHOD, uses_evidence
from countless.engine.runtimes import Runtimes
from countless.engine.text.density import UNKNOWN
from countless.errors import CountlessError, NoTextModelError, QueryTypeError
from countless.estimator.answering_model import AnsweringModel
from countless.estimator.answers.counts import answers, estimate_of
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.fused import Fused, prior_densities
from countless.estimator.prepared import only_evidence
from countless.query.answer_clock import answer_clock
from countless.query.question import Question

if TYPE_CHECKING:
    from countless.query.predicate import Where


@dataclass(frozen=True, eq=False)
class Batch:
    """Questions to one model, and how they are asked: by a number of ``particles`` and ``threads``, or None."""

    model: AnsweringModel
    asked: Sequence[Where]
    particles: int | None = None
    threads: int | None = None
    seed: int | None = None
    summary: bool = True

    def estimates(self, method: str, table_rows: int | None) -> list[Estimate | CountlessError]:
        """The answer to each question, or its error. The time that all took is shared out."""
        started, method = answer_clock(), self.model.method(method)
        if uses_evidence(method):
            fused = self._fused()
            ms = self._share(started)
            return [
                each if isinstance(each, CountlessError) else each[1].estimate(method, ms, table_rows) for each in fused
            ]
        found = self.densities(method)
        ms, calibration, rows = self._share(started), self.model.calibration, self.model.schema.rows
        return [
            each
            if isinstance(each, CountlessError)
            else only_evidence(each[0]) or estimate_of(*each, calibration, rows, method, ms, table_rows)
            for each in found
        ]

    def densities(self, method: str = MODEL_METHOD) -> list[tuple[Question, Density] | CountlessError]:
        """What each question asks and its density by the model, or its error."""

        def walk(questions: list[Question]) -> list[Density | None]:
            regions = [question.region for question in questions]
            mute = [method in METHODS and lacks_network(self._runtimes, region, method) for region in regions]
            asked = [region for region, lacks in zip(regions, mute, strict=True) if not lacks]
            found = iter(densities(self._runtimes, asked, method, self.particles, self._seed))
            return [None if lacks else next(found) for lacks in mute]

        found: list[tuple[Question, Density] | CountlessError] = []
        for each in answers(self.model.filters, walk, self.asked, self.threads):
            if isinstance(each, CountlessError):
                found.append(each)
            else:
                question, density = each
                found.append(NoTextModelError(UNKNOWN) if density is None else (question, density))
        return found

    def _fused(self) -> list[tuple[Question, Fused] | CountlessError]:
        """What each question asks, and what evidence rows and the model say of it, or its error."""

        def walk(questions: list[Question]) -> list[Fused]:
            runtimes = self._runtimes.remembering()  # what counts tell of a box is asked for several times
            fusions = [self.model.fusion(runtimes, question) for question in questions]
            return list(map(Fused, fusions, prior_densities(runtimes, fusions, self.particles, self._seed)))

        return answers(self.model.filters, walk, self.asked, self.threads)

    @property
    def _seed(self) -> int:
        return self.model.seed if self.seed is None else self.seed

    @property
    def _runtimes(self) -> Runtimes:
        return self.model.runtimes if self.summary else self.model.runtimes.without_summaries()

    def _share(self, started: float) -> float:
        """Milliseconds of each question."""
        return (answer_clock() - started) * 1e3 / max(1, len(self.asked))


def listed(clauses: Iterable[Where]) -> list[Where]:
    """Several clauses; one alone is an error, though its characters could be listed."""
    from countless.query.predicate import ColumnReference, Predicate

    if isinstance(clauses, str | Predicate | ColumnReference):
        raise QueryTypeError("estimate_many takes a list of clauses: use estimate for one")
    return list(clauses)
