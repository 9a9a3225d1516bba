"""Error bars of aggregates, from the calibration of counts.

A count has the bar that a question of the same shape has. A mean has a standard error, and its bar is as wide as the
level asks of a normal distribution. Three things make it err. The values of a group are cut into a few bands, in their
order, that hold as many rows each: the rows of every band may be off by the factor that the calibration allows such a
count, all of them together, and bands independently of each other. By how much the spread over values disagreed with
the count of all rows, so much of it may be in the wrong place. And few rows vary by chance. A variance is a mean of
squares, and a quantile is where the share of rows below it, a mean of zeros and ones, may be off to.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cached_property import cached_property
from countless.estimator.calibration.conformal import Calibration, Shape, bars

Ends = tuple[FloatArray, FloatArray]  # of error bars, the low and the high
BANDS = 8  # of values, in which errors go together
STEPS = 48  # counts, from a part of a row to all, for which it is looked up how far off they may be
LEAST_ROWS = 0.01
MOST_OFF = 1e3  # the logarithm of a factor that is unknown


class Bars:
    """Error bars of the counts of combinations of values, in a table of ``total`` rows.

    ``shape`` is that of the question for one of them, ``disagreement`` the share of rows that may be elsewhere. What
    was counted (``certain``) has bars without width.
    """

    def __init__(
        self, calibration: Calibration, total: int, shape: Shape, certain: bool, disagreement: float = 0.0
    ) -> None:
        self.calibration = calibration
        self.total = total
        self.shape = shape
        self.certain = certain
        self.disagreement = disagreement
        self.reach = NormalDist().inv_cdf(0.5 + calibration.level / 2)  # standard errors

    def shaped(self, shape: Shape) -> Bars:
        """The same for questions of another shape."""
        return Bars(self.calibration, self.total, shape, self.certain, self.disagreement)

    def of_counts(self, rows: FloatArray) -> Ends:
        """The ends of the bars of groups with these numbers of rows."""
        if self.certain:
            return np.rint(rows), np.rint(rows)
        return bars(self.calibration, rows, self.total, self.shape)

    def of_mean(self, owner: IntArray, rows: FloatArray, amounts: FloatArray, means: FloatArray) -> Ends:
        """The ends of the bars of groups' ``means``; ``rows`` are those of each of ``amounts``, by group and in order.

        A bar does not reach beyond the least and the greatest amount.
        """
        with np.errstate(invalid="ignore", divide="ignore"):  # infinity is a value too, and a group may be empty
            off = self.reach * self.errors(owner, rows, amounts - means[owner], len(means))
            least, most = means.copy(), means.copy()
            np.minimum.at(least, owner, amounts)
            np.maximum.at(most, owner, amounts)
            return np.maximum(means - off, least), np.minimum(means + off, most)

    def of_share(self, rows: FloatArray, counted: FloatArray, share: float) -> float:
        """The standard error of the ``share`` of rows that are ``counted`` (1, others 0)."""
        owner = np.zeros(len(rows), dtype=np.int64)
        return float(self.errors(owner, rows, counted - share, 1)[0])

    def errors(self, owner: IntArray, rows: FloatArray, distances: FloatArray, groups: int) -> FloatArray:
        """For each group the standard error of the mean of its ``distances`` from the mean."""
        if self.certain:
            return np.zeros(groups)
        known = np.bincount(owner, rows, groups)
        before = np.cumsum(rows) - rows / 2 - (np.cumsum(known) - known)[owner]
        bands = owner * BANDS + np.clip(before / known[owner] * BANDS, 0, BANDS - 1).astype(np.int64)
        counts: FloatArray = np.bincount(bands, rows, groups * BANDS).astype(np.float64)
        sums = np.bincount(bands, rows * distances, groups * BANDS)
        by_factor = ((self.factors(counts) * sums) ** 2).reshape(groups, BANDS).sum(axis=1)
        squares = np.bincount(owner, rows * distances**2, groups)
        found: FloatArray = np.sqrt(by_factor + squares * (1 + self.disagreement**2 * known)) / known
        return found

    def factors(self, rows: FloatArray) -> FloatArray:
        """The standard error of each number of rows, as the logarithm of a factor."""
        counts, off = self._off
        factors: FloatArray = np.interp(np.log(np.maximum(rows, LEAST_ROWS)), counts, off)
        return factors

    @cached_property
    def _off(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of counts, and the standard error of each: a band is a range, where ``shape`` has one value."""
        shape = replace(self.shape, single=max(0, self.shape.single - 1))
        counts = np.linspace(math.log(LEAST_ROWS), math.log(max(self.total, 2)), STEPS)
        off = []
        for count in counts:
            low, high = self.calibration.factors(math.exp(count), shape)
            width = math.log(high / low) if low > 0 and high < math.inf else MOST_OFF
            off.append(width / (2 * self.reach))
        return counts, np.array(off)
