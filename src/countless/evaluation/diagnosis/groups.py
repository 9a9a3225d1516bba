"""Q-errors by groups of queries: by filters, by true count, by over- and underestimation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.evaluation.diagnosis.answered import AnsweredQuery, signed_error

QUANTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


@dataclass(frozen=True)
class Group:
    """The q-errors of some of the queries."""

    label: str
    queries: int
    share: float  # of all queries
    q_error: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"label": self.label, "queries": self.queries, "share": self.share, "q_error": self.q_error}


def quantiles(errors: Sequence[float]) -> dict[str, float]:
    """The median, the tail, and the largest.

    >>> quantiles([1.0, 2.0, 3.0])["p50"]
    2.0
    """
    return {name: float(np.percentile(errors, percentile)) for name, percentile in QUANTILES.items()}


def by_filters(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """By the number of filters that a query joins with AND."""
    return _groups(answers, ((len(answer.question.filters), str(len(answer.question.filters))) for answer in answers))


def by_truth(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """By the true count, in powers of ten."""
    return _groups(answers, (band(answer.question.truth) for answer in answers))


def by_direction(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """By too large, too small and exact answers. If answer and truth are both at most one row, the answer is exact."""
    names = {1: "over", -1: "under", 0: "even"}
    signs = (int(np.sign(signed_error(answer.estimate, answer.question.truth))) for answer in answers)
    return _groups(answers, ((-sign, names[sign]) for sign in signs))


def band(count: int) -> tuple[int, str]:
    """The number of digits of a count, and a label of that range.

    >>> band(0), band(9), band(10), band(123_456)
    ((0, '0'), (1, '1-9'), (2, '10-99'), (6, '100,000-999,999'))
    """
    if count <= 0:
        return 0, "0"
    digits = len(str(count))
    return digits, f"{10 ** (digits - 1):,}-{10**digits - 1:,}"


def _groups(answers: Sequence[AnsweredQuery], keys: Iterable[tuple[int, str]]) -> tuple[Group, ...]:
    """One group for each key, in the order of keys."""
    errors: dict[tuple[int, str], list[float]] = {}
    for answer, key in zip(answers, keys, strict=True):
        errors.setdefault(key, []).append(answer.q_error)
    return tuple(
        Group(key[1], len(group_errors), len(group_errors) / len(answers), quantiles(group_errors))
        for key, group_errors in sorted(errors.items())
    )
