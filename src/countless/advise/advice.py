"""Advice for a PostgreSQL table: the queries its planner misestimates most, and the statistics that would help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from countless.advise.combinations import combinations_of
from countless.advise.findings import Advised, Finding, Suggestion, quantiles
from countless.advise.planner import Planner
from countless.advise.questions import PlannerQuestion
from countless.advise.ranking import Candidate, EstimatedQuestion, Ranking
from countless.advise.statements import Statistics, target_for
from countless.advise.trial import tried
from countless.errors import DataError
from countless.estimator.estimator import Estimator

SEED = 0  # of the sampled rows that estimate numbers of combinations


def advise(
    planner: Planner,
    estimator: Estimator,
    questions: Sequence[PlannerQuestion],
    *,
    most: int = 5,
    worst: int = 10,
    count: bool = False,
    apply: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> Advised:
    """Compare the planner with the model, and find the statistics that would improve its estimates most.

    The result has the ``worst`` questions, in which the planner differs most from the model. With ``count`` their true
    rows are counted too, and they are sorted by the planner's error. With ``apply`` (``"keep"`` or ``"try"``) the
    statistics are created one by one in a transaction, with ANALYZE, and the planner is asked again. Statistics that do
    not help are rolled back at once; with ``"try"`` all are rolled back at the end.
    """
    planner_columns = {name.casefold() for name in planner.columns}
    missing = [name for name in estimator.schema.names if name.casefold() not in planner_columns]
    if missing:
        raise DataError(f'{planner.table} has no column "{missing[0]}": give a model that was fitted to this table')
    tell = tell or (lambda stage: None)
    tell("asking the planner and the model")
    combinations = combinations_of(estimator, SEED, planner.distinct, planner.rows)
    estimated_questions, ranking = _ranked(planner, estimator, questions, combinations)
    findings = tuple(_finding(question, planner) for question in estimated_questions)
    total = sum(question.error for question in estimated_questions)
    tell("looking for statistics that would help")
    suggestions = tuple(
        _suggestion(candidate, planner, combinations(candidate.columns), total) for candidate in ranking.choose(most)
    )
    advised = Advised(
        planner.table,
        len(findings),
        len(questions) - len(findings),
        planner.analyzed,
        quantiles(findings),
        tuple(sorted(findings, key=lambda finding: -finding.error)),
        suggestions,
    )
    if apply is not None and suggestions:
        tell("creating statistics one by one, and ANALYZE")
        advised = tried(planner, advised, keep=apply == "keep")
    shown_findings = advised.findings[:worst]
    if count:
        tell("counting")
        counted = [replace(finding, rows=planner.count(finding.clause)) for finding in shown_findings]
        shown_findings = tuple(sorted(counted, key=lambda finding: -finding.error))
    return replace(advised, findings=shown_findings)


def _ranked(
    planner: Planner,
    estimator: Estimator,
    questions: Sequence[PlannerQuestion],
    combinations: Callable[[tuple[str, ...]], int],
) -> tuple[list[EstimatedQuestion], Ranking]:
    """The questions that PostgreSQL can read with both estimates, and a ranking, which makes more estimates."""
    model = _CachedEstimates(estimator)
    model.estimate_all([question.where for question in questions])
    answered = []
    for question in questions:
        expected = planner.expected(question.where)
        if expected is not None:
            answered.append(EstimatedQuestion(question, expected, model(question.where)))
    if not answered:
        raise DataError(f"PostgreSQL cannot read any of the {len(questions)} questions: is the model of this table?")
    texts = {text.name for text in estimator.schema.texts}
    without_text = [_without_columns(estimated, texts) for estimated in answered]
    pairs = {
        estimated.question.clause_on((first, second))
        for estimated in without_text
        for first in estimated.question.filters
        for second in estimated.question.filters
        if first < second
    }
    model.estimate_all(sorted(pairs))
    return without_text, Ranking(without_text, combinations, cache(planner.expected), model)


def _finding(estimated: EstimatedQuestion, planner: Planner) -> Finding:
    where = estimated.question.where
    return Finding(planner.sql(where), where, frozenset(estimated.question.filters), estimated.planner, estimated.model)


def _without_columns(estimated: EstimatedQuestion, names: set[str]) -> EstimatedQuestion:
    """The same question without the filters on ``names``, which are text columns."""
    filters = {name: column_filter for name, column_filter in estimated.question.filters.items() if name not in names}
    return replace(estimated, question=replace(estimated.question, filters=filters))


class _CachedEstimates:
    """The model's estimates, each computed once."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._rows: dict[str, float] = {}

    def estimate_all(self, clauses: Sequence[str]) -> None:
        """Estimate several clauses at once."""
        for estimate in self._estimator.estimate_many(list(dict.fromkeys(clauses))):
            self._rows[estimate.where] = estimate.rows

    def __call__(self, where: str) -> float:
        if where not in self._rows:
            self._rows[where] = self._estimator.estimate(where).rows
        return self._rows[where]


def _suggestion(candidate: Candidate, planner: Planner, combinations: int, total: float) -> Suggestion:
    """The statistics for a set of columns. Dependencies serve only equality, lists of combinations also ranges."""
    planner_names = {name.casefold(): name for name in planner.columns}
    columns = tuple(planner_names[name.casefold()] for name in candidate.columns)
    kinds = ("ndistinct", "dependencies", "mcv") if candidate.equality else ("ndistinct", "mcv")
    target = target_for(combinations)
    return Suggestion(
        Statistics(planner.schema, planner.name, columns, kinds, target), candidate.gain / total, candidate.questions
    )
