"""The results of advice: misestimated queries, suggested statistics, and the planner's estimates with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countless.advise.statements import Statistics
from countless.estimator.answers.estimate import q_error

QUANTILES = {"p50": 0.5, "p90": 0.9, "max": 1.0}


@dataclass(frozen=True)
class Finding:
    """A question: what the planner expects, the model, and, if it was looked, the truth and the planner afterwards.

    ``where`` is PostgreSQL's SQL, and ``clause`` the same as the model has it, about the ``columns``.
    """

    where: str
    clause: str
    columns: frozenset[str]
    planner: float
    model: float
    rows: int | None = None
    after: float | None = None

    @property
    def error(self) -> float:
        """The planner's q-error against the model, or against the truth if it is known."""
        return q_error(self.planner, self.model if self.rows is None else self.rows)

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        facts = {name: getattr(self, name) for name in ("where", "planner", "model", "rows", "after")}
        return facts | {"q_error": self.error}


@dataclass(frozen=True)
class Effect:
    """What statistics did when they were made: the planner's factor off the model, a geometric mean, without and with.

    It is that of the questions which filter two or more of their columns.
    """

    before: float
    after: float
    helped: bool


@dataclass(frozen=True)
class Suggestion:
    """Statistics, and which share of the planner's error (the sum of its logarithms) they would explain."""

    statistics: Statistics
    share: float
    questions: int
    effect: Effect | None = None

    def to_json(self) -> dict[str, Any]:
        """The suggestion as JSON has it."""
        one = self.statistics
        facts: dict[str, Any] = {"name": one.name, "columns": list(one.columns), "kinds": list(one.kinds)}
        facts |= {"share": self.share, "questions": self.questions, "statements": list(one.statements)}
        return facts | {"effect": None if self.effect is None else asdict(self.effect)}


@dataclass(frozen=True)
class Advised:
    """What was found; ``applied`` says whether statistics were made, tried and undone, or neither.

    ``after`` is with those that helped.
    """

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
            "findings": [finding.to_json() for finding in self.findings],
            "statistics": [suggestion.to_json() for suggestion in self.suggestions],
            "after": self.after,
            "applied": self.applied,
        }


def quantiles(findings: Sequence[Finding]) -> dict[str, float]:
    """Quantiles of the planner's errors."""
    errors = [finding.error for finding in findings]
    return {name: float(np.quantile(errors, share, method="inverted_cdf")) for name, share in QUANTILES.items()}
