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
    """A question with the estimates of planner and model; perhaps also its true rows, and the planner's later estimate.

    ``where`` is in PostgreSQL's SQL, ``clause`` the same in DuckDB's, about the ``columns``. ``rows`` is None unless
    they were counted, and ``after`` None unless statistics were created.
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
        """The planner's q-error against the true rows if they are known, else against the model."""
        return q_error(self.planner, self.model if self.rows is None else self.rows)

    def to_json(self) -> dict[str, Any]:
        """The finding for JSON."""
        fields = {name: getattr(self, name) for name in ("where", "planner", "model", "rows", "after")}
        return fields | {"q_error": self.error}


@dataclass(frozen=True)
class Effect:
    """The measured effect: the geometric mean of the planner's q-error against the model, before and after.

    It is measured on the questions that filter two or more of the statistics' columns.
    """

    before: float
    after: float
    helped: bool


@dataclass(frozen=True)
class Suggestion:
    """Statistics, and the share of the planner's error (the sum of its logarithms) that they would explain."""

    statistics: Statistics
    share: float
    questions: int
    effect: Effect | None = None

    def to_json(self) -> dict[str, Any]:
        """The suggestion for JSON."""
        statistics = self.statistics
        fields: dict[str, Any] = {
            "name": statistics.name,
            "columns": list(statistics.columns),
            "kinds": list(statistics.kinds),
        }
        fields |= {"share": self.share, "questions": self.questions, "statements": list(statistics.statements)}
        return fields | {"effect": None if self.effect is None else asdict(self.effect)}


@dataclass(frozen=True)
class Advised:
    """The advice. ``applied`` says whether statistics were kept, tried and undone, or (None) not created.

    ``after`` has the planner's errors with the statistics that helped.
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
        """The advice for JSON."""
        fields = {name: getattr(self, name) for name in ("table", "questions", "passed_over", "analyzed", "before")}
        return fields | {
            "findings": [finding.to_json() for finding in self.findings],
            "statistics": [suggestion.to_json() for suggestion in self.suggestions],
            "after": self.after,
            "applied": self.applied,
        }


def quantiles(findings: Sequence[Finding]) -> dict[str, float]:
    """Quantiles of the planner's errors."""
    errors = [finding.error for finding in findings]
    return {name: float(np.quantile(errors, share, method="inverted_cdf")) for name, share in QUANTILES.items()}
