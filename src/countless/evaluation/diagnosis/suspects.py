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

ENOUGH = 20  # least queries with a column or pair, and least queries without it
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

    ``excess`` is a difference of mean \\|ln q-error\\|, so its exponential is a factor; ``standard_error`` is that of
    ``excess``. Queries with a column are compared with queries that have as many filters but not the column. The excess
    of a pair is what both columns together add to what each adds alone. In other words: the coefficient of the column,
    or of the pair, in a least-squares fit of \\|ln q-error\\| with an intercept for each number of filters and, for a
    pair, a term for each of its columns; the standard error is the one that allows for unequal variances (HC1).
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
        """The excess minus two standard errors; suspects are sorted by it."""
        return self.excess - SURE * self.standard_error

    @property
    def stands_out(self) -> bool:
        """Whether the excess is more than two standard errors."""
        return self.certain > 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "factor": self.factor, "stands_out": self.stands_out}


def suspect_columns(answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> tuple[Suspect, ...]:
    """Every column that enough queries filter and enough do not, the most suspect first."""
    return _sorted(_Regression(answers, columns).column(index) for index in range(len(columns)))


def suspect_pairs(answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> tuple[Suspect, ...]:
    """Every pair of columns that enough queries filter, the most suspect first."""
    regression = _Regression(answers, columns)
    return _sorted(regression.pair(*pair) for pair in itertools.combinations(range(len(columns)), 2))


class _Regression:
    """Errors and filtered columns of queries, centred among queries with the same number of filters."""

    def __init__(self, answers: Sequence[AnsweredQuery], columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        filters = np.array([len(answer.question.filters) for answer in answers])
        _, self._strata, sizes = np.unique(filters, return_inverse=True, return_counts=True)
        self._sizes = sizes.astype(float)
        self._errors = self._centred(np.log([answer.q_error for answer in answers]))  # (queries,)
        index_of = {name: index for index, name in enumerate(columns)}
        self._has = np.zeros((len(columns), len(answers)))  # (columns, queries)
        for query, answer in enumerate(answers):
            for name in answer.question.columns:
                if name in index_of:
                    self._has[index_of[name], query] = 1.0
        self._has_centred = np.array([self._centred(row) for row in self._has]).reshape(self._has.shape)

    def column(self, index: int) -> Suspect | None:
        """The column at ``index``."""
        return self._suspect((self._columns[index],), self._has[index], ())

    def pair(self, first: int, second: int) -> Suspect | None:
        """The pair of columns at two indices."""
        names = (self._columns[first], self._columns[second])
        return self._suspect(
            names, self._has[first] * self._has[second], (self._has_centred[first], self._has_centred[second])
        )

    def _centred(self, values: FloatArray) -> FloatArray:
        means = np.bincount(self._strata, values, len(self._sizes)) / self._sizes
        centred: FloatArray = values - means[self._strata]
        return centred

    def _suspect(self, names: tuple[str, ...], has: FloatArray, covariates: tuple[FloatArray, ...]) -> Suspect | None:
        count, total = int(has.sum()), len(has)
        free = total - len(self._sizes) - len(covariates) - 1  # degrees of freedom
        if min(count, total - count) < ENOUGH or free < 1:
            return None
        centred, errors = self._centred(has), self._errors
        if covariates:
            basis = np.stack(covariates, axis=1)  # (queries, 2)
            solved = np.linalg.lstsq(basis, np.stack([centred, errors], axis=1), rcond=None)[0]
            centred, errors = centred - basis @ solved[:, 0], errors - basis @ solved[:, 1]
        weight = float(centred @ centred)
        if weight < 1.0:  # too few queries to compare with
            return None
        excess = float(centred @ errors) / weight
        residuals = errors - excess * centred
        variance = float(np.sum((centred * residuals) ** 2)) / weight**2 * total / free
        return Suspect(names, count, excess, math.sqrt(variance))


def _sorted(suspects: Any) -> tuple[Suspect, ...]:
    return tuple(
        sorted(
            (suspect for suspect in suspects if suspect is not None),
            key=lambda suspect: (-suspect.certain, suspect.columns),
        )
    )
