"""Completion: candidate values for a missing column of each row, with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Completions:
    """Candidates of a column: row ``i`` has the entries from ``starts[i]`` to ``starts[i + 1]``.

    ``codes`` rise within a row, and the ``probabilities`` of a row add up to 1. ``kept_share`` (rows) is the share of
    the column's mass that the candidates had before later columns were read: 1 if none was left out.

    >>> found = Completions(np.array([0, 2, 3]), np.array([1, 4, 0]), np.array([0.4, 0.6, 1.0]), np.ones(2))
    >>> found.codes[found.best()].tolist(), found.of(np.array([1, 1])).tolist()
    ([4, 0], [0.4, 0.0])
    """

    starts: IntArray
    codes: IntArray
    probabilities: FloatArray
    kept_share: FloatArray

    def __len__(self) -> int:
        return len(self.kept_share)

    @property
    def rows(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def best(self) -> IntArray:
        """The entry of each row that is the most likely; of equal ones, the first."""
        order = np.lexsort((self.codes, -self.probabilities, self.rows))
        return order[self.starts[:-1]]

    def at(self, shares: FloatArray) -> IntArray:
        """The entry of each row where its probabilities, added up by rising codes, pass the row's share."""
        total = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        below, above = total[self.starts[:-1]], total[self.starts[1:]]
        entries = np.searchsorted(total[1:], below + shares * (above - below), side="right")
        inside: IntArray = np.clip(entries, self.starts[:-1], self.starts[1:] - 1)
        return inside

    def of(self, codes: IntArray) -> FloatArray:
        """The probability of one code of each row; 0 if it was no candidate."""
        same = self.codes == codes[self.rows]
        probs = np.zeros(len(self))
        probs[self.rows[same]] = self.probabilities[same]
        return probs

    def dense(self, count: int) -> FloatArray:
        """All probabilities (rows, count)."""
        probs = np.zeros((len(self), count))
        probs[self.rows, self.codes] = self.probabilities
        return probs

    def weighed(self, logs: FloatArray) -> Completions:
        """The same after evidence whose log-probability is ``logs`` with each entry."""
        with np.errstate(divide="ignore"):
            scores = np.log(self.probabilities) + logs
        return mixture([Scored(self.rows, self.codes, scores, self.kept_share)])

    def without(self, code: int, rows: BoolArray) -> Completions:
        """The same without ``code`` in some rows, unless it is all that they may be; the others stay as likely.

        >>> found = Completions(np.array([0, 2, 3]), np.array([1, 4, 4]), np.array([0.4, 0.6, 1.0]), np.ones(2))
        >>> less = found.without(4, np.array([True, True]))
        >>> less.codes.tolist(), less.probabilities.tolist()
        ([1, 4], [0.4, 1.0])
        """
        several = np.diff(self.starts) > 1
        stay = (self.codes != code) | ~(rows & several)[self.rows]
        starts = np.concatenate([[0], np.cumsum(stay)])[self.starts]
        return Completions(starts, self.codes[stay], self.probabilities[stay], self.kept_share)

    @classmethod
    def joined(cls, parts: Sequence[Completions]) -> Completions:
        """The rows of all parts, one after the other."""
        lengths = [np.diff(part.starts) for part in parts]
        return cls(
            np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *lengths]))]),
            np.concatenate([np.zeros(0, dtype=np.int64), *(part.codes for part in parts)]),
            np.concatenate([np.zeros(0), *(part.probabilities for part in parts)]),
            np.concatenate([np.zeros(0), *(part.kept_share for part in parts)]),
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """Candidates of rows under one order, with the logarithm of each one's probability together with the row's.

    That may be up to a constant of the row if there is only one order.
    """

    rows: IntArray
    codes: IntArray
    scores: FloatArray
    kept_share: FloatArray  # of each row


def mixture(parts: Sequence[Scored]) -> Completions:
    """The mean over orders, of the same rows, made to add up to 1 in every row."""
    count = len(parts[0].kept_share)
    stride = 1 + max(int(part.codes.max(initial=0)) for part in parts)
    keys, places = np.unique(np.concatenate([part.rows * stride + part.codes for part in parts]), return_inverse=True)
    rows, codes = np.divmod(keys, stride)
    scores = np.full(len(keys), -np.inf)
    np.logaddexp.at(scores, places, np.concatenate([part.scores for part in parts]))
    most = np.full(count, -np.inf)
    np.maximum.at(most, rows, scores)
    masses = np.exp(scores - most[rows])
    sums = np.bincount(rows, masses, minlength=count)
    starts = np.searchsorted(rows, np.arange(count + 1))
    return Completions(starts, codes, masses / sums[rows], np.mean([part.kept_share for part in parts], axis=0))
