"""Data classes of a diagnosis: a query with its filters, its true count and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from countless.estimator.answers.estimate import q_error
from countless.query.parsing.conjuncts import Conjunct

Tell = Callable[[str, int, int], None]  # progress: a stage, the number done, and the total


@dataclass(frozen=True)
class DiagnosedQuery:
    """A query with its filters, which have the model's names of columns, and its true count."""

    where: str
    filters: tuple[Conjunct, ...]
    truth: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct filtered columns."""
        return tuple(dict.fromkeys(name for conjunct in self.filters for name in conjunct.columns))


@dataclass(frozen=True)
class Settled:
    """The model's own answer to a query, without sampling error as far as possible.

    ``how`` is ``exact`` (nothing was sampled), ``settled`` (two independent walks agree with each other and with the
    previous answer) or ``moving`` (they do not, even with the most particles). ``rows`` is the mean of the two walks,
    ``particles`` their number of particles (None if the estimate was exact), and ``apart`` the ratio of their answers.
    """

    rows: float
    how: str
    particles: int | None = None
    apart: float = 1.0


@dataclass(frozen=True)
class AnsweredQuery:
    """A question with the estimate, and the model's own answer without sampling error.

    In logarithms the error is the sum of the sampler's (estimate to model answer) and the model's (model answer to
    truth). All are at least one row, as in the q-error.
    """

    question: DiagnosedQuery
    estimate: float
    model_answer: Settled

    @property
    def q_error(self) -> float:
        """The factor between estimate and truth."""
        return q_error(self.estimate, self.question.truth)

    @property
    def sampler_error(self) -> float:
        """The factor between the estimate and the model's own answer."""
        return q_error(self.estimate, self.model_answer.rows)

    @property
    def model_error(self) -> float:
        """The factor between the model's own answer and the truth."""
        return q_error(self.model_answer.rows, self.question.truth)

    @property
    def is_samplers(self) -> bool:
        """Whether the sampler's error is the larger part."""
        return self.sampler_error > self.model_error

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "where": self.question.where,
            "filters": len(self.question.filters),
            "truth": self.question.truth,
            "estimate": self.estimate,
            "own": self.model_answer.rows,
            "own_how": self.model_answer.how,
            "own_particles": self.model_answer.particles,
            "q_error": self.q_error,
            "sampler_error": self.sampler_error,
            "model_error": self.model_error,
        }


def signed_error(estimate: float, truth: float) -> float:
    """The logarithm of estimate over truth, both at least one row: positive for an overestimate.

    >>> signed_error(100, 100), round(signed_error(0.2, 10), 3)
    (0.0, -2.303)
    """
    return math.log(max(estimate, 1.0) / max(truth, 1.0))
