"""Error bars of aggregates, from the calibration of counts.

A count has the bar of a question of the same shape. A mean has a standard error, and its bar is as wide as the level
requires for a normal distribution. The error has three causes:

- The counts of values are estimates. The sorted values of a group are cut into bands of equally many rows. The count of
  each band may be wrong by the factor that the calibration gives for such a count, independently of other bands.
- If the counts of values did not add up to the count of all rows, this share of the rows may have other values.
- Few rows vary by chance.

A variance is a mean of squares. A quantile follows from the share of rows below it, which is a mean of zeros and ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cached_property import cached_property
from countless.estimator.calibration.conformal import Calibration, Shape, bars

Ends = tuple[FloatArray, FloatArray]  # the low and the high ends of error bars
BANDS = 8  # bands of values; the errors within a band have the same sign
STEPS = 48  # counts, from LEAST_ROWS to all rows, whose errors are looked up in the calibration
LEAST_ROWS = 0.01
UNKNOWN_ERROR = 1e3  # the logarithm of an unknown factor


class Bars:
    """Error bars of the counts of combinations of values, in a table of ``total`` rows.

    ``shape`` is the shape of the question for one combination, ``disagreement`` the share of rows that may have other
    values. Counts that are ``certain`` have bars of width 0.
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
        """The error bars for questions of another shape."""
        return Bars(self.calibration, self.total, shape, self.certain, self.disagreement)

    def of_counts(self, rows: FloatArray) -> Ends:
        """The ends of the bars of groups with these numbers of rows."""
        if self.certain:
            return np.rint(rows), np.rint(rows)
        return bars(self.calibration, rows, self.total, self.shape)

    def of_mean(self, group_ids: IntArray, rows: FloatArray, amounts: FloatArray, means: FloatArray) -> Ends:
        """The ends of the bars of groups' ``means``; ``rows`` are the rows of each of ``amounts``, sorted by group.

        A bar does not extend beyond the least and the greatest amount.
        """
        with np.errstate(invalid="ignore", divide="ignore"):  # infinity is a value too, and a group may be empty
            error = self.reach * self.errors(group_ids, rows, amounts - means[group_ids], len(means))
            least, most = means.copy(), means.copy()
            np.minimum.at(least, group_ids, amounts)
            np.maximum.at(most, group_ids, amounts)
            return np.maximum(means - error, least), np.minimum(means + error, most)

    def of_share(self, rows: FloatArray, counted: FloatArray, share: float) -> float:
        """The standard error of a ``share`` of rows; ``counted`` is 1 for these rows and 0 for others."""
        group_ids = np.zeros(len(rows), dtype=np.int64)
        return float(self.errors(group_ids, rows, counted - share, 1)[0])

    def errors(self, group_ids: IntArray, rows: FloatArray, distances: FloatArray, groups: int) -> FloatArray:
        """For each group the standard error of the mean of its ``distances`` from the mean."""
        if self.certain:
            return np.zeros(groups)
        group_rows = np.bincount(group_ids, rows, groups)
        rows_before = np.cumsum(rows) - rows / 2 - (np.cumsum(group_rows) - group_rows)[group_ids]
        bands = group_ids * BANDS + np.clip(rows_before / group_rows[group_ids] * BANDS, 0, BANDS - 1).astype(np.int64)
        counts: FloatArray = np.bincount(bands, rows, groups * BANDS).astype(np.float64)
        sums = np.bincount(bands, rows * distances, groups * BANDS)
        by_factor = ((self.factors(counts) * sums) ** 2).reshape(groups, BANDS).sum(axis=1)
        squares = np.bincount(group_ids, rows * distances**2, groups)
        errors: FloatArray = np.sqrt(by_factor + squares * (1 + self.disagreement**2 * group_rows)) / group_rows
        return errors

    def factors(self, rows: FloatArray) -> FloatArray:
        """The standard error of each number of rows, as the logarithm of a factor."""
        counts, errors = self._count_errors
        factors: FloatArray = np.interp(np.log(np.maximum(rows, LEAST_ROWS)), counts, errors)
        return factors

    @cached_property
    def _count_errors(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of counts, and the standard error of each. A band is a range; ``shape`` is that of one value."""
        shape = replace(self.shape, single=max(0, self.shape.single - 1))
        counts = np.linspace(math.log(LEAST_ROWS), math.log(max(self.total, 2)), STEPS)
        errors = []
        for count in counts:
            low, high = self.calibration.factors(math.exp(count), shape)
            width = math.log(high / low) if low > 0 and high < math.inf else UNKNOWN_ERROR
            errors.append(width / (2 * self.reach))
        return counts, np.array(errors)
