"""Data classes of a diagnosis: a query with its filters, its true count and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from countless.estimator.answers.estimate import q_error
from countless.query.parsing.conjuncts import Conjunct

Tell = Callable[[str, int, int], None]  # a stage, how much of it is done, and of how much


@dataclass(frozen=True)
class DiagnosedQuery:
    """A query taken apart, with the model's names for the columns, and its true count."""

    where: str
    filters: tuple[Conjunct, ...]
    truth: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it filters on, each once."""
        return tuple(dict.fromkeys(name for part in self.filters for name in part.columns))


@dataclass(frozen=True)
class Settled:
    """The model's own answer to a query, as far as it can be found.

    ``how`` is ``exact`` (nothing was sampled), ``settled`` (two independent walks agree, and with the answer before) or
    ``moving`` (they do not, even with the most particles that were allowed). ``rows`` is the mean of the two.
    ``particles`` is what each had, None if the estimate was exact already; ``apart`` is the factor between them.
    """

    rows: float
    how: str
    particles: int | None = None
    apart: float = 1.0


@dataclass(frozen=True)
class AnsweredQuery:
    """A question, the estimator's answer, and the model's own.

    In logarithms the query's error is the sampler's and the model's together: estimate to own answer, own answer to
    truth. Everything is at least one row, as in the q-error.
    """

    question: DiagnosedQuery
    estimate: float
    own: Settled

    @property
    def q_error(self) -> float:
        """The factor between estimate and truth."""
        return q_error(self.estimate, self.question.truth)

    @property
    def sampler_error(self) -> float:
        """The factor between the estimate and the model's own answer."""
        return q_error(self.estimate, self.own.rows)

    @property
    def model_error(self) -> float:
        """The factor between the model's own answer and the truth."""
        return q_error(self.own.rows, self.question.truth)

    @property
    def is_samplers(self) -> bool:
        """Whether the sampler's is the larger part."""
        return self.sampler_error > self.model_error

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "where": self.question.where,
            "filters": len(self.question.filters),
            "truth": self.question.truth,
            "estimate": self.estimate,
            "own": self.own.rows,
            "own_how": self.own.how,
            "own_particles": self.own.particles,
            "q_error": self.q_error,
            "sampler_error": self.sampler_error,
            "model_error": self.model_error,
        }


def signed_error(estimate: float, truth: float) -> float:
    """The logarithm of estimate over truth, both at least one row: positive if too much was answered.

    >>> signed_error(100, 100), round(signed_error(0.2, 10), 3)
    (0.0, -2.303)
    """
    return math.log(max(estimate, 1.0) / max(truth, 1.0))
