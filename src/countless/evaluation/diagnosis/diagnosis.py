"""The complete diagnosis of one model's errors on its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from countless.engine.methods import MODEL_METHOD
from countless.errors import DataError
from countless.estimator.estimator import Estimator
from countless.estimator.model_table import open_table
from countless.evaluation.diagnosis.answered import AnsweredQuery, DiagnosedQuery, Tell
from countless.evaluation.diagnosis.blame import Blamed, blamed
from countless.evaluation.diagnosis.convergence import CHUNK, ConvergenceLimits, settle
from countless.evaluation.diagnosis.groups import Group, by_direction, by_filters, by_truth, quantiles
from countless.evaluation.diagnosis.questions import random_questions, workload_questions
from countless.evaluation.diagnosis.suspects import Suspect, suspect_columns, suspect_pairs
from countless.workload import Query

WORST = 20


@dataclass(frozen=True)
class Diagnosis:
    """The errors of a model: by kind of query, by column and pair, of sampler and model, and the worst queries."""

    answers: tuple[AnsweredQuery, ...]
    columns: tuple[Suspect, ...]
    pairs: tuple[Suspect, ...]
    worst: tuple[Blamed, ...]
    effort: ConvergenceLimits
    passed_over: int = 0  # queries of the workload that filter text

    @property
    def q_error(self) -> dict[str, float]:
        """Quantiles of the factor between estimate and truth."""
        return quantiles([answer.q_error for answer in self.answers])

    @property
    def sampler_error(self) -> dict[str, float]:
        """Quantiles of the factor between the estimate and the model's own answer."""
        return quantiles([answer.sampler_error for answer in self.answers])

    @property
    def model_error(self) -> dict[str, float]:
        """Quantiles of the factor between the model's own answer and the truth."""
        return quantiles([answer.model_error for answer in self.answers])

    @property
    def by_filters(self) -> tuple[Group, ...]:
        """The q-errors by the number of filters."""
        return by_filters(self.answers)

    @property
    def by_truth(self) -> tuple[Group, ...]:
        """The q-errors by the true count."""
        return by_truth(self.answers)

    @property
    def by_direction(self) -> tuple[Group, ...]:
        """The q-errors of answers that are too large, too small, and exact."""
        return by_direction(self.answers)

    @property
    def model_answer_counts(self) -> dict[str, int]:
        """The numbers of the model's own answers that are exact, settled, and still moving."""
        counts = Counter(answer.model_answer.how for answer in self.answers)
        return {how: counts[how] for how in ("exact", "settled", "moving")}

    @property
    def samplers(self) -> int:
        """The number of queries in which the sampler's error is the larger part."""
        return sum(answer.is_samplers for answer in self.answers)

    @property
    def blamed_columns(self) -> list[tuple[tuple[str, ...], int]]:
        """Sets of columns that are to blame for the worst queries, with their numbers of queries."""
        sets = Counter(bad.blame.columns for bad in self.worst if bad.blame is not None and not bad.blame.whole)
        return sorted(sets.items(), key=lambda entry: (-entry[1], len(entry[0]), entry[0]))

    def to_json(self, *, answers: bool = False) -> dict[str, Any]:
        """Plain data; with ``answers``, also of every query."""
        fields: dict[str, Any] = {
            "queries": len(self.answers),
            "passed_over": self.passed_over,
            "q_error": self.q_error,
            "by_filters": [group.to_json() for group in self.by_filters],
            "by_truth": [group.to_json() for group in self.by_truth],
            "by_direction": [group.to_json() for group in self.by_direction],
            "columns": [suspect.to_json() for suspect in self.columns],
            "pairs": [suspect.to_json() for suspect in self.pairs],
            "sampler": {
                "sampler_error": self.sampler_error,
                "model_error": self.model_error,
                "larger_part": self.samplers,
                "larger_part_of_worst": sum(bad.blame is None for bad in self.worst),
                "own_answers": self.model_answer_counts,
                "most_particles": self.effort.most,
                "agree_within": round(self.effort.agree - 1, 6),
            },
            "worst": [bad.to_json() for bad in self.worst],
        }
        return fields | {"answers": [answer.to_json() for answer in self.answers]} if answers else fields


def diagnose(
    estimator: Estimator,
    table: Any,
    *,
    queries: int = 1000,
    seed: int = 0,
    filters: tuple[int, int] | None = None,
    workload: Sequence[Query] | None = None,
    particles: int | None = None,
    effort: ConvergenceLimits | None = None,
    tell: Tell = lambda stage, done, total: None,
) -> Diagnosis:
    """Estimate random queries, or those of a ``workload``, and find where the errors are and what causes them.

    ``filters`` is the least and the largest number of filters of a random query. ``particles`` fixes the number of
    particles of the estimates. ``effort`` limits the search for the model's own answers. ``tell`` receives the
    progress.
    """
    schema, effort = estimator.schema, effort or ConvergenceLimits()
    if not schema.coded:
        raise DataError(
            "the model is of text alone, and only columns are diagnosed: "
            "use countless evaluate --patterns mix, or countless bench text"
        )
    source = open_table(table, schema)
    if workload is None:
        questions = random_questions(schema, source, queries, seed, filters, tell)
    else:
        tell("reading the workload", 0, len(workload))
        questions = workload_questions(schema, source, workload)
    answers = _answers(estimator, questions, particles, effort, tell)
    names = [column.name for column in schema.coded]
    bad = [answer for answer in answers if answer.q_error > 1.0]
    worst = sorted(bad, key=lambda answer: -answer.q_error)[:WORST]
    return Diagnosis(
        answers,
        suspect_columns(answers, names),
        suspect_pairs(answers, names),
        blamed(estimator, source, worst, tell),
        effort,
        0 if workload is None else len(workload) - len(questions),
    )


def _answers(
    estimator: Estimator,
    questions: Sequence[DiagnosedQuery],
    particles: int | None,
    effort: ConvergenceLimits,
    tell: Tell,
) -> tuple[AnsweredQuery, ...]:
    estimates = []
    for start in range(0, len(questions), CHUNK):
        tell("answering", start, len(questions))
        clauses = [question.where for question in questions[start : start + CHUNK]]
        estimates += estimator.estimate_many(clauses, method=MODEL_METHOD, particles=particles)
    tell("answering", len(questions), len(questions))
    model_answers = settle(estimator, questions, estimates, effort, particles, tell)
    return tuple(
        AnsweredQuery(question, estimate.rows, model_answer)
        for question, estimate, model_answer in zip(questions, estimates, model_answers, strict=True)
    )
