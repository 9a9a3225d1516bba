"""Advice for a PostgreSQL table: the queries its planner misestimates most, and the statistics that would help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from countless.advise.combinations import combinations_of
from countless.advise.findings import Advised, Finding, Suggestion, quantiles
from countless.advise.planner import Planner
from countless.advise.questions import PlannerQuestion
from countless.advise.ranking import Candidate, Judged, Ranking
from countless.advise.statements import Statistics, target_for
from countless.advise.trial import tried
from countless.errors import DataError
from countless.estimator.estimator import Estimator

SEED = 0  # of the rows by which combinations of values are counted


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
    """Compare the planner with the model, and find the statistics that would bring it closest.

    The result has the ``worst`` questions, in which the planner is furthest from the model; with ``count`` they are
    counted too, and sorted by the planner's error. ``apply`` is ``"keep"`` or ``"try"``: then the statistics are
    created one by one in a transaction, with ANALYZE, and the planner is asked again. Those that do not help are undone
    at once, and after a trial all of them.
    """
    known = {name.casefold() for name in planner.columns}
    missing = [name for name in estimator.schema.names if name.casefold() not in known]
    if missing:
        raise DataError(f'{planner.table} has no column "{missing[0]}": give a model that was fitted to this table')
    tell = tell or (lambda stage: None)
    tell("asking the planner and the model")
    combinations = combinations_of(estimator, SEED, planner.distinct, planner.rows)
    judged, ranking = _ranked(planner, estimator, questions, combinations)
    findings = tuple(_finding(one, planner) for one in judged)
    total = sum(one.error for one in judged)
    tell("looking for statistics that would help")
    suggestions = tuple(
        _suggestion(found, planner, combinations(found.columns), total) for found in ranking.choose(most)
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
    shown = advised.findings[:worst]
    if count:
        tell("counting")
        counted = [replace(finding, rows=planner.count(finding.clause)) for finding in shown]
        shown = tuple(sorted(counted, key=lambda finding: -finding.error))
    return replace(advised, findings=shown)


def _ranked(
    planner: Planner,
    estimator: Estimator,
    questions: Sequence[PlannerQuestion],
    combinations: Callable[[tuple[str, ...]], int],
) -> tuple[list[Judged], Ranking]:
    """The questions that PostgreSQL can read, with both answers, and the ranking that asks both for more."""
    model = _Remembered(estimator)
    model.learn([asked.where for asked in questions])
    judged = []
    for asked in questions:
        expected = planner.expected(asked.where)
        if expected is not None:
            judged.append(Judged(asked, expected, model(asked.where)))
    if not judged:
        raise DataError(f"PostgreSQL cannot read any of the {len(questions)} questions: is the model of this table?")
    texts = {text.name for text in estimator.schema.texts}
    known = [_without(one, texts) for one in judged]
    pairs = {
        one.question.about((first, second))
        for one in known
        for first in one.question.parts
        for second in one.question.parts
        if first < second
    }
    model.learn(sorted(pairs))
    return known, Ranking(known, combinations, cache(planner.expected), model)


def _finding(one: Judged, planner: Planner) -> Finding:
    where = one.question.where
    return Finding(planner.sql(where), where, frozenset(one.question.parts), one.planner, one.model)


def _without(one: Judged, names: set[str]) -> Judged:
    """The same without the parts about ``names``, which are text."""
    parts = {name: part for name, part in one.question.parts.items() if name not in names}
    return replace(one, question=replace(one.question, parts=parts))


class _Remembered:
    """The model's answers, each asked once."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._rows: dict[str, float] = {}

    def learn(self, clauses: Sequence[str]) -> None:
        """Ask for several at once."""
        for estimate in self._estimator.estimate_many(list(dict.fromkeys(clauses))):
            self._rows[estimate.where] = estimate.rows

    def __call__(self, where: str) -> float:
        if where not in self._rows:
            self._rows[where] = self._estimator.estimate(where).rows
        return self._rows[where]


def _suggestion(found: Candidate, planner: Planner, combinations: int, total: float) -> Suggestion:
    """The statements for a set of columns: dependencies only serve equality, lists of combinations ranges too."""
    own = {name.casefold(): name for name in planner.columns}
    columns = tuple(own[name.casefold()] for name in found.columns)
    kinds = ("ndistinct", "dependencies", "mcv") if found.equality else ("ndistinct", "mcv")
    target = target_for(combinations)
    return Suggestion(
        Statistics(planner.schema, planner.name, columns, kinds, target), found.gain / total, found.questions
    )
