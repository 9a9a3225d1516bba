"""Measurement of rule violations: estimates every case of every rule and checks the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from countless.data.columns.schema import Schema
from countless.estimator.answers.estimate import Estimate
from countless.estimator.model_table import open_table
from countless.evaluation.rules.cases import Case, Drawing

SAME = 1e-9  # relative difference that counts as rounding
NO_MORE = 0.01  # rows by which a narrower question may exceed a wider one
SPLIT = 0.01  # relative difference that two parts may have from their whole
HALF_A_ROW = 0.5  # the same in rows, since counts are whole numbers
SHOWN = 3  # worst cases in a report

Rows = Sequence[float]
Tell = Callable[[str, int, int], None]  # progress: a rule, the number done, and the total


class ClauseEstimator(Protocol):
    """Anything that estimates clauses, one by one and in batches."""

    def estimate(self, where: str) -> Estimate:
        """The estimate of one clause."""
        ...

    def estimate_many(self, clauses: Iterable[str]) -> list[Estimate]:
        """The estimates of several clauses."""
        ...


@dataclass(frozen=True)
class Broken:
    """A case that breaks a rule. ``by`` is relative to the larger of its rows and 1."""

    by: float
    clauses: tuple[str, ...]
    rows: tuple[float, ...]


@dataclass(frozen=True)
class RuleViolations:
    """How often one rule was broken, and by how much."""

    rule: str
    cases: int
    broken: int
    median: float  # of the violations
    worst: float
    examples: tuple[Broken, ...]  # the worst first

    @property
    def share(self) -> float:
        """The share of cases that break the rule."""
        return self.broken / self.cases if self.cases else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "share": self.share}


def measure(
    estimator: ClauseEstimator,
    fresh: ClauseEstimator,
    schema: Schema,
    table: Any,
    count: int = 1000,
    seed: int = 0,
    tell: Tell = lambda rule, done, total: None,
) -> list[RuleViolations]:
    """The violations of each rule, in ``count`` random cases on ``table``.

    ``fresh`` is the same estimator, loaded a second time. Rules about ranges have no cases if no column of the table
    has three distinct values.
    """
    source = open_table(table, schema)
    drawing = Drawing(schema, source, count, seed)
    cases_by_rule = [(name, judge, list(draw(drawing))) for name, draw, judge in RULES]
    findings = []
    for done, (name, judge, cases) in enumerate(cases_by_rule):
        tell(name, done, len(cases_by_rule))
        answers = _estimated_repeatedly(estimator, fresh, cases) if judge is same else _estimated(estimator, cases)
        findings.append(_violations(name, cases, answers, judge))
    return findings


def same(rows: Rows) -> float:
    """All answers are equal."""
    return max(_relative_excess(abs(answer - rows[0]), rows[0], SAME * abs(rows[0])) for answer in rows[1:])


def unchanged(rows: Rows) -> float:
    """The answers with and without a filter that keeps everything are equal."""
    return same(rows)


def none(rows: Rows) -> float:
    """All answers are exactly zero."""
    return max(map(abs, rows))


def no_more(rows: Rows) -> float:
    """The second answer, to the narrower question, is not larger than the first."""
    wide, narrow = rows
    return _relative_excess(narrow - wide, wide, max(NO_MORE, SAME * wide))


def adds_up(rows: Rows) -> float:
    """The second and third answer add up to the first."""
    whole, left, right = rows
    return _relative_excess(abs(left + right - whole), whole, max(HALF_A_ROW, SPLIT * whole))


RULES: tuple[tuple[str, Callable[[Drawing], Iterable[Case]], Callable[[Rows], float]], ...] = (
    ("the same question, the same answer", Drawing.alone, same),
    ("a filter that keeps everything changes nothing", Drawing.whole, unchanged),
    ("an impossible filter gives zero", Drawing.empty, none),
    ("one more filter gives no more rows", Drawing.more, no_more),
    ("a tighter range gives no more rows", Drawing.tighter, no_more),
    ("two parts of a range add up to it", Drawing.split, adds_up),
)


def _relative_excess(difference: float, rows: float, tolerance: float) -> float:
    """The difference relative to the larger of ``rows`` and one, or 0 if it is within the tolerance."""
    return difference / max(rows, 1.0) if difference > tolerance else 0.0


def _estimated_repeatedly(
    estimator: ClauseEstimator, fresh: ClauseEstimator, cases: Sequence[Case]
) -> list[tuple[float, ...]]:
    """Each clause alone, again, by the fresh estimator, in one batch, and in smaller batches in another order."""
    clauses = [where for (where,) in cases]
    backwards = clauses[::-1]
    by_halves = [answer for half in (0, 1) for answer in estimator.estimate_many(backwards[half::2])]
    halves = [*backwards[0::2], *backwards[1::2]]
    rows_of = {where: answer.rows for where, answer in zip(halves, by_halves, strict=True)}
    together = estimator.estimate_many(clauses)
    return [
        (
            estimator.estimate(where).rows,
            estimator.estimate(where).rows,
            fresh.estimate(where).rows,
            answer.rows,
            rows_of[where],
        )
        for where, answer in zip(clauses, together, strict=True)
    ]


def _estimated(estimator: ClauseEstimator, cases: Sequence[Case]) -> list[tuple[float, ...]]:
    """The rows of every clause of every case, estimated in one batch."""
    answers = iter(estimator.estimate_many([where for case in cases for where in case]))
    return [tuple(next(answers).rows for _ in case) for case in cases]


def _violations(
    name: str, cases: Sequence[Case], answers: Sequence[tuple[float, ...]], judge: Callable[[Rows], float]
) -> RuleViolations:
    checked = [Broken(judge(rows), case, rows) for case, rows in zip(cases, answers, strict=True)]
    broken = sorted((violation for violation in checked if violation.by > 0), key=lambda violation: -violation.by)
    amounts = [violation.by for violation in broken] or [0.0]
    return RuleViolations(name, len(cases), len(broken), float(np.median(amounts)), max(amounts), tuple(broken[:SHOWN]))
