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
    return {name: float(np.percentile(errors, place)) for name, place in QUANTILES.items()}


def by_filters(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """By the number of filters that a query joins with AND."""
    return _groups(answers, ((len(item.question.filters), str(len(item.question.filters))) for item in answers))


def by_truth(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """By the true count, in powers of ten."""
    return _groups(answers, (band(item.question.truth) for item in answers))


def by_direction(answers: Sequence[AnsweredQuery]) -> tuple[Group, ...]:
    """Too much, too little, and right to the row; where both are less than a row, it is right."""
    names = {1: "over", -1: "under", 0: "even"}
    signs = (int(np.sign(signed_error(item.estimate, item.question.truth))) for item in answers)
    return _groups(answers, ((-sign, names[sign]) for sign in signs))


def band(count: int) -> tuple[int, str]:
    """The power of ten that a count lies in, and its name.

    >>> band(0), band(9), band(10), band(123_456)
    ((0, '0'), (1, '1-9'), (2, '10-99'), (6, '100,000-999,999'))
    """
    if count <= 0:
        return 0, "0"
    digits = len(str(count))
    return digits, f"{10 ** (digits - 1):,}-{10**digits - 1:,}"


def _groups(answers: Sequence[AnsweredQuery], keys: Iterable[tuple[int, str]]) -> tuple[Group, ...]:
    """One group for each key, in their order."""
    errors: dict[tuple[int, str], list[float]] = {}
    for item, key in zip(answers, keys, strict=True):
        errors.setdefault(key, []).append(item.q_error)
    return tuple(
        Group(key[1], len(found), len(found) / len(answers), quantiles(found)) for key, found in sorted(errors.items())
    )
