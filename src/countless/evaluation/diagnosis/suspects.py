"""Suspect columns: columns and pairs that occur more often in badly estimated queries than in good ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.evaluation.diagnosis.answered import AnsweredQuery

ENOUGH = 20  # queries with a column or a pair, and as many without: fewer say nothing
SURE = 2.0  # standard errors
COLUMN_DEFINITION = (
    "excess: by what factor the q-error is larger, in the geometric mean, in queries that filter on the column than in "
    "queries with as many filters that do not"
)
PAIR_DEFINITION = (
    "excess: by what factor the q-error is larger, in the geometric mean, in queries that filter on both columns than "
    "what either column adds by itself would make it, among queries with as many filters"
)


@dataclass(frozen=True)
class Suspect:
    """A column or a pair of columns, and how much larger the errors are of queries with it.

    ``excess`` is a difference of mean \\|ln q-error\\|, so its exponential is a factor; ``standard_error`` is its own.
    A column is compared with queries that have as many filters and lack it. Of a pair it is what both together add to
    what each adds alone. In other words: the coefficient of the column, or of the pair, in a least-squares fit of
    \\|ln q-error\\| with an intercept for each number of filters and, for a pair, a term for each of its columns;
    the standard error is the one that allows for unequal variances (HC1).
    """

    columns: tuple[str, ...]
    queries: int
    excess: float
    standard_error: float

    @property
    def factor(self) -> float:
        """The excess as a factor between q-errors."""
        return math.exp(self.excess)

    @property
    def certain(self) -> float:
        """What is left of the excess after two standard errors; suspects are sorted by it."""
        return self.excess - SURE * self.standard_error

    @property
    def stands_out(self) -> bool:
        """Whether the excess is more than two standard errors."""
        return self.certain > 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "factor": self.factor, "stands_out": self.stands_out}


def suspect_columns(answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> tuple[Suspect, ...]:
    """Every column that enough queries have and enough lack, the most suspect first."""
    return _sorted(_Regression(answers, columns).column(index) for index in range(len(columns)))


def suspect_pairs(answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> tuple[Suspect, ...]:
    """Every pair of columns that enough queries have, the most suspect first."""
    regression = _Regression(answers, columns)
    return _sorted(regression.pair(*pair) for pair in itertools.combinations(range(len(columns)), 2))


class _Regression:
    """Errors and columns of queries, each less its mean among queries with as many filters."""

    def __init__(self, answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        filters = np.array([len(item.question.filters) for item in answers])
        _, self._strata, sizes = np.unique(filters, return_inverse=True, return_counts=True)
        self._sizes = sizes.astype(float)
        self._errors = self._centred(np.log([item.q_error for item in answers]))  # (queries,)
        places = {name: index for index, name in enumerate(columns)}
        self._has = np.zeros((len(columns), len(answers)))  # (columns, queries)
        for query, item in enumerate(answers):
            for name in item.question.columns:
                if name in places:
                    self._has[places[name], query] = 1.0
        self._own = np.array([self._centred(row) for row in self._has]).reshape(self._has.shape)

    def column(self, index: int) -> Suspect | None:
        """The column at ``index``."""
        return self._suspect((self._columns[index],), self._has[index], ())

    def pair(self, first: int, second: int) -> Suspect | None:
        """The columns at two places."""
        names = (self._columns[first], self._columns[second])
        return self._suspect(names, self._has[first] * self._has[second], (self._own[first], self._own[second]))

    def _centred(self, values: FloatArray) -> FloatArray:
        means = np.bincount(self._strata, values, len(self._sizes)) / self._sizes
        centred: FloatArray = values - means[self._strata]
        return centred

    def _suspect(self, names: tuple[str, ...], has: FloatArray, given: tuple[FloatArray, ...]) -> Suspect | None:
        count, total = int(has.sum()), len(has)
        free = total - len(self._sizes) - len(given) - 1  # degrees of freedom
        if min(count, total - count) < ENOUGH or free < 1:
            return None
        centred, errors = self._centred(has), self._errors
        if given:
            basis = np.stack(given, axis=1)  # (queries, 2)
            solved = np.linalg.lstsq(basis, np.stack([centred, errors], axis=1), rcond=None)[0]
            centred, errors = centred - basis @ solved[:, 0], errors - basis @ solved[:, 1]
        weight = float(centred @ centred)
        if weight < 1.0:  # almost nothing to compare with
            return None
        excess = float(centred @ errors) / weight
        rest = errors - excess * centred
        variance = float(np.sum((centred * rest) ** 2)) / weight**2 * total / free
        return Suspect(names, count, excess, math.sqrt(variance))


def _sorted(found: Any) -> tuple[Suspect, ...]:
    return tuple(sorted((item for item in found if item is not None), key=lambda item: (-item.certain, item.columns)))
