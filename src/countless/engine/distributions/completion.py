"""Completion: candidate values for a missing column of each row, with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Completions:
    """Candidates of a column: row ``i`` has the entries from ``starts[i]`` to ``starts[i + 1]``.

    The ``codes`` of a row ascend, and its ``probabilities`` add up to 1. ``kept_share`` (rows) is the share of the
    column's mass that the candidates had before later columns were read: 1 if no code was left out.

    >>> candidates = Completions(np.array([0, 2, 3]), np.array([1, 4, 0]), np.array([0.4, 0.6, 1.0]), np.ones(2))
    >>> candidates.codes[candidates.best()].tolist(), candidates.of(np.array([1, 1])).tolist()
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
        """The most likely entry of each row; the first of equally likely ones."""
        order = np.lexsort((self.codes, -self.probabilities, self.rows))
        return order[self.starts[:-1]]

    def at(self, shares: FloatArray) -> IntArray:
        """The entry of each row where its cumulative probability, by ascending codes, passes the row's share."""
        total = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        start_total, end_total = total[self.starts[:-1]], total[self.starts[1:]]
        entries = np.searchsorted(total[1:], start_total + shares * (end_total - start_total), side="right")
        clipped: IntArray = np.clip(entries, self.starts[:-1], self.starts[1:] - 1)
        return clipped

    def of(self, codes: IntArray) -> FloatArray:
        """The probability of the given code in each row; 0 if it is not a candidate."""
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
        """The candidates after more evidence, which has the log-probability ``logs`` given each entry."""
        with np.errstate(divide="ignore"):
            scores = np.log(self.probabilities) + logs
        return mixture([Scored(self.rows, self.codes, scores, self.kept_share)])

    def without(self, code: int, rows: BoolArray) -> Completions:
        """The candidates without ``code`` in the marked ``rows``, except where it is the only one. Nothing is rescaled.

        >>> candidates = Completions(np.array([0, 2, 3]), np.array([1, 4, 4]), np.array([0.4, 0.6, 1.0]), np.ones(2))
        >>> fewer = candidates.without(4, np.array([True, True]))
        >>> fewer.codes.tolist(), fewer.probabilities.tolist()
        ([1, 4], [0.4, 1.0])
        """
        has_others = np.diff(self.starts) > 1
        stays = (self.codes != code) | ~(rows & has_others)[self.rows]
        starts = np.concatenate([[0], np.cumsum(stays)])[self.starts]
        return Completions(starts, self.codes[stays], self.probabilities[stays], self.kept_share)

    @classmethod
    def joined(cls, parts: Sequence[Completions]) -> Completions:
        """The rows of all ``parts``, one part after the other."""
        counts = [np.diff(part.starts) for part in parts]
        return cls(
            np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *counts]))]),
            np.concatenate([np.zeros(0, dtype=np.int64), *(part.codes for part in parts)]),
            np.concatenate([np.zeros(0), *(part.probabilities for part in parts)]),
            np.concatenate([np.zeros(0), *(part.kept_share for part in parts)]),
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """Candidates of rows under one order. ``scores`` are log-probabilities of each candidate together with its row.

    If there is only one order, the scores of a row may lack a constant.
    """

    rows: IntArray
    codes: IntArray
    scores: FloatArray
    kept_share: FloatArray  # of each row


def mixture(by_order: Sequence[Scored]) -> Completions:
    """The mean over orders of the same rows, normalised in every row."""
    count = len(by_order[0].kept_share)
    stride = 1 + max(int(scored.codes.max(initial=0)) for scored in by_order)
    keys, entries = np.unique(
        np.concatenate([scored.rows * stride + scored.codes for scored in by_order]), return_inverse=True
    )
    rows, codes = np.divmod(keys, stride)
    scores = np.full(len(keys), -np.inf)
    np.logaddexp.at(scores, entries, np.concatenate([scored.scores for scored in by_order]))
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, rows, scores)
    masses = np.exp(scores - highest[rows])
    sums = np.bincount(rows, masses, minlength=count)
    starts = np.searchsorted(rows, np.arange(count + 1))
    return Completions(starts, codes, masses / sums[rows], np.mean([scored.kept_share for scored in by_order], axis=0))
