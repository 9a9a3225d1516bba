"""Advice for a table of PostgreSQL's: where its planner errs most, and which statistics would help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from countless.advise.combinations import combinations_of
from countless.advise.planner import Planner
from countless.advise.questions import Question
from countless.advise.ranking import Candidate, Judged, Ranking
from countless.advise.statements import Statistics, target_for
from countless.errors import DataError
from countless.estimator.estimate import q_error
from countless.estimator.estimator import Estimator

SEED = 0  # of the rows by which combinations of values are counted
QUANTILES = {"p50": 0.5, "p90": 0.9, "max": 1.0}


@dataclass(frozen=True)
class Finding:
    """A question: what the planner expects, the model, and, if it was looked, the truth and the planner afterwards."""

    where: str
    planner: float
    model: float
    rows: int | None = None
    after: float | None = None

    @property
    def error(self) -> float:
        """The planner's q-error against the model, or against the truth if it is known."""
        return q_error(self.planner, self.model if self.rows is None else self.rows)


@dataclass(frozen=True)
class Suggestion:
    """Statistics, and which share of the planner's error (the sum of its logarithms) they would explain."""

    statistics: Statistics
    share: float
    questions: int

    def to_json(self) -> dict[str, Any]:
        """The suggestion as JSON has it."""
        one = self.statistics
        facts: dict[str, Any] = {"name": one.name, "columns": list(one.columns), "kinds": list(one.kinds)}
        return facts | {"share": self.share, "questions": self.questions, "statements": list(one.statements)}


@dataclass(frozen=True)
class Advised:
    """What was found; ``applied`` says whether statistics were made, tried and undone, or neither."""

    table: str
    questions: int
    passed_over: int
    analyzed: bool
    before: dict[str, float]
    findings: tuple[Finding, ...]
    suggestions: tuple[Suggestion, ...]
    after: dict[str, float] | None = None
    applied: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The advice as JSON has it."""
        facts = {name: getattr(self, name) for name in ("table", "questions", "passed_over", "analyzed", "before")}
        return facts | {
            "findings": [asdict(finding) | {"q_error": finding.error} for finding in self.findings],
            "statistics": [suggestion.to_json() for suggestion in self.suggestions],
            "after": self.after,
            "applied": self.applied,
        }


def advise(
    planner: Planner,
    estimator: Estimator,
    questions: Sequence[Question],
    *,
    most: int = 5,
    worst: int = 10,
    count: bool = False,
    apply: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> Advised:
    """Compare the planner with the model, and find the statistics that would bring it closest.

    The ``worst`` questions are told, with their true counts if it shall ``count``. ``apply`` is ``"keep"`` or
    ``"try"``: then the statistics are made in one transaction, with ANALYZE, and the planner is asked again; in a trial
    all of it is undone.
    """
    known = {name.casefold() for name in planner.columns}
    missing = [name for name in estimator.schema.names if name.casefold() not in known]
    if missing:
        raise DataError(f'{planner.table} has no column "{missing[0]}": give a model that was fitted to this table')
    tell = tell or (lambda stage: None)
    tell("asking the planner and the model")
    combinations = combinations_of(estimator, SEED)
    judged, ranking = _ranked(planner, estimator, questions, combinations)
    findings = tuple(Finding(one.question.where, one.planner, one.model) for one in judged)
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
        _quantiles(findings),
        tuple(sorted(findings, key=lambda finding: -finding.error)),
        suggestions,
    )
    if apply is not None and suggestions:
        tell("creating statistics, and ANALYZE")
        advised = _applied(planner, advised, keep=apply == "keep")
    shown = advised.findings[:worst]
    if count:
        tell("counting")
        shown = tuple(replace(finding, rows=planner.count(finding.where)) for finding in shown)
    return replace(advised, findings=shown)


def _ranked(
    planner: Planner,
    estimator: Estimator,
    questions: Sequence[Question],
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
        raise DataError(f"PostgreSQL can read none of the {len(questions)} questions: does the model fit the table?")
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


def _applied(planner: Planner, advised: Advised, keep: bool) -> Advised:
    with planner.trial(keep):
        for suggestion in advised.suggestions:
            for statement in suggestion.statistics.statements:
                planner.run(statement)
        planner.run(f"ANALYZE {planner.table}")
        after = tuple(replace(finding, after=planner.expected(finding.where)) for finding in advised.findings)
    later = _quantiles([replace(finding, planner=finding.after or 1.0) for finding in after])
    return replace(advised, findings=after, after=later, applied="kept" if keep else "undone")


def _quantiles(findings: Sequence[Finding]) -> dict[str, float]:
    errors = [finding.error for finding in findings]
    return {name: float(np.quantile(errors, share, method="inverted_cdf")) for name, share in QUANTILES.items()}
