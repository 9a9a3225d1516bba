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

SAME = 1e-9  # relative; below it, two numbers differ by rounding
NO_MORE = 0.01  # rows by which a narrower question may exceed a wider one
SPLIT = 0.01  # the share by which two parts may differ from their whole
HALF_A_ROW = 0.5  # and the rows: a count is whole
SHOWN = 3  # of the worst cases

Rows = Sequence[float]
Tell = Callable[[str, int, int], None]  # a rule, how many are done, of how many


class ClauseEstimator(Protocol):
    """Whatever answers clauses, one by one and together."""

    def estimate(self, where: str) -> Estimate:
        """The answer to one."""
        ...

    def estimate_many(self, clauses: Iterable[str]) -> list[Estimate]:
        """The answers to several."""
        ...


@dataclass(frozen=True)
class Broken:
    """A case that breaks a rule: by how much, relative to the larger of its count and one row."""

    by: float
    clauses: tuple[str, ...]
    rows: tuple[float, ...]


@dataclass(frozen=True)
class RuleViolations:
    """How often one rule was broken, and by how much."""

    rule: str
    cases: int
    broken: int
    median: float  # of the broken ones
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
    """One finding per rule, each from ``count`` random cases on ``table``.

    ``fresh`` is the same estimator, loaded once more. A rule that needs ranges has no cases on a table without columns
    of at least three values.
    """
    source = open_table(table, schema)
    drawing = Drawing(schema, source, count, seed)
    drawn = [(name, judge, list(draw(drawing))) for name, draw, judge in RULES]
    findings = []
    for done, (name, judge, cases) in enumerate(drawn):
        tell(name, done, len(drawn))
        answers = _repeated(estimator, fresh, cases) if judge is same else _asked(estimator, cases)
        findings.append(_finding(name, cases, answers, judge))
    return findings


def same(rows: Rows) -> float:
    """Every answer is the first one."""
    return max(_beyond(abs(other - rows[0]), rows[0], SAME * abs(rows[0])) for other in rows[1:])


def unchanged(rows: Rows) -> float:
    """With and without a filter that keeps everything, the same."""
    return same(rows)


def none(rows: Rows) -> float:
    """Exactly zero."""
    return max(map(abs, rows))


def no_more(rows: Rows) -> float:
    """The second answer, to the narrower question, is not above the first."""
    wide, narrow = rows
    return _beyond(narrow - wide, wide, max(NO_MORE, SAME * wide))


def adds_up(rows: Rows) -> float:
    """The second and third answer make the first."""
    whole, left, right = rows
    return _beyond(abs(left + right - whole), whole, max(HALF_A_ROW, SPLIT * whole))


RULES: tuple[tuple[str, Callable[[Drawing], Iterable[Case]], Callable[[Rows], float]], ...] = (
    ("the same question, the same answer", Drawing.alone, same),
    ("a filter that keeps everything changes nothing", Drawing.whole, unchanged),
    ("an impossible filter gives zero", Drawing.empty, none),
    ("one more filter gives no more rows", Drawing.more, no_more),
    ("a tighter range gives no more rows", Drawing.tighter, no_more),
    ("two parts of a range add up to it", Drawing.split, adds_up),
)


def _beyond(difference: float, rows: float, tolerance: float) -> float:
    """The difference relative to the larger of ``rows`` and one, or 0 if it is within the tolerance."""
    return difference / max(rows, 1.0) if difference > tolerance else 0.0


def _repeated(estimator: ClauseEstimator, fresh: ClauseEstimator, cases: Sequence[Case]) -> list[tuple[float, ...]]:
    """One by one, again, by a fresh estimator, all together, and in smaller batches in another order."""
    clauses = [where for (where,) in cases]
    backwards = clauses[::-1]
    company = [answer for first in (0, 1) for answer in estimator.estimate_many(backwards[first::2])]
    halves = [*backwards[0::2], *backwards[1::2]]
    places = {where: answer.rows for where, answer in zip(halves, company, strict=True)}
    together = estimator.estimate_many(clauses)
    return [
        (
            estimator.estimate(where).rows,
            estimator.estimate(where).rows,
            fresh.estimate(where).rows,
            answer.rows,
            places[where],
        )
        for where, answer in zip(clauses, together, strict=True)
    ]


def _asked(estimator: ClauseEstimator, cases: Sequence[Case]) -> list[tuple[float, ...]]:
    """The rows of every clause of every case, asked all together."""
    answers = iter(estimator.estimate_many([where for case in cases for where in case]))
    return [tuple(next(answers).rows for _ in case) for case in cases]


def _finding(
    name: str, cases: Sequence[Case], answers: Sequence[tuple[float, ...]], judge: Callable[[Rows], float]
) -> RuleViolations:
    judged = [Broken(judge(rows), case, rows) for case, rows in zip(cases, answers, strict=True)]
    broken = sorted((item for item in judged if item.by > 0), key=lambda item: -item.by)
    amounts = [item.by for item in broken] or [0.0]
    return RuleViolations(name, len(cases), len(broken), float(np.median(amounts)), max(amounts), tuple(broken[:SHOWN]))
