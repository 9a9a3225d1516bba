"""Means of groups from the model and the evidence together.

The hits of a group are a sample of its rows, whose mean has a standard error. The model has a mean too, with an error
of its own. They are weighed by these errors. Where the two are further apart than the errors allow, the model is wrong:
its error is then taken to be as large as the distance. The hits are rows of the table, and count as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.estimator.answers.aggregates.group_fusion import reach_of

Rows = tuple[FloatArray, FloatArray]  # how many rows groups have, and how many at most
FLOOR = 0.05  # a model's mean has an error of at least so much of the deviation: 400 hits outweigh it
PSEUDO_HITS = 20.0  # of the model's deviation: few hits do not have a reliable one
ENOUGH, MOST_RATIO = 30, 3.0  # from 30 hits on, the model's deviation is at most 3 times that of the hits


@dataclass(frozen=True, eq=False)
class FusedMeans:
    """For each group its mean, the standard error, and the mean of the rows that are no hits.

    ``weights`` have how much of the rows' distribution is that of the hits, ``reach`` how many standard errors make a
    bar.
    """

    means: FloatArray
    errors: FloatArray
    others: FloatArray
    weights: FloatArray
    reach: FloatArray

    def ends(self, least: float, most: float) -> tuple[FloatArray, FloatArray]:
        """The ends of the error bars, which do not go beyond ``least`` and ``most``, but for the means themselves."""
        off = self.reach * self.errors
        with np.errstate(invalid="ignore"):
            low, high = np.maximum(self.means - off, least), np.minimum(self.means + off, most)
            return np.fmin(low, self.means), np.fmax(high, self.means)


def fused_means(
    model: tuple[FloatArray, FloatArray, FloatArray],
    owner: IntArray,
    amounts: FloatArray,
    rows: Rows,
    level: float,
    least_variance: float = 0.0,
) -> FusedMeans:
    """The means of groups that have ``rows`` rows, from the ``amounts`` of their hits, each with its ``owner``.

    ``model`` has the means that the model says, their standard errors, and the deviations of amounts within groups. A
    mean that it does not know is NaN: then it is that of all hits, with their deviation for an error. Amounts have a
    variance of at least ``least_variance``.
    """
    groups, (count, most) = len(rows[0]), rows
    hits = np.bincount(owner, minlength=groups).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        sample = np.where(hits > 0, np.bincount(owner, amounts, groups) / hits, 0.0)
        squares = np.bincount(owner, (amounts - sample[owner]) ** 2, groups)
        known = np.isfinite(model[0])
        mean, spread = (float(np.mean(amounts)), float(np.std(amounts))) if len(amounts) else (np.nan, np.nan)
        said, error, deviation = (
            np.where(known, one, other) for one, other in zip(model, (mean, spread, spread), strict=True)
        )
        own = np.where(hits > 1, squares / np.maximum(hits - 1, 1), 0.0)
        plausible = np.where((hits >= ENOUGH) & (own > 0), MOST_RATIO * np.sqrt(own), np.inf)
        deviation = np.fmin(deviation, plausible)
        trusted = np.where(known, PSEUDO_HITS, 1.0)
        pooled = ((hits - 1) * own + trusted * deviation**2) / np.maximum(hits - 1 + trusted, 1.0)
        variance = np.fmax(np.where(hits > 0, np.fmax(own, pooled), deviation**2), least_variance)
        by_sample = np.where(hits > 0, variance / hits, np.inf)
        by_model = np.fmax(error, FLOOR * deviation) ** 2
        by_model = np.where(hits > 0, np.fmax(by_model, (sample - said) ** 2 - by_sample), by_model)
        weight = np.where(hits > 0, np.nan_to_num(1 / (1 + by_sample / by_model), nan=1.0), 0.0)
        others = weight * sample + np.where(weight < 1, (1 - weight) * said, 0.0)
        uncertain = np.where(hits > 0, weight * by_sample, by_model)
        rest, unseen = (np.where(each > 0, np.clip(1 - hits / each, 0.0, 1.0), 0.0) for each in (count, most))
        means = (1 - rest) * sample + np.where(rest > 0, rest * others, 0.0)
        means = np.where((hits > 0) | np.isfinite(said), means, np.nan)
        by_chance = np.where(hits > 0, variance / np.maximum(most - hits, 1.0), 0.0)  # the model's error has it already
        errors = np.where(unseen > 0, unseen * np.sqrt(uncertain + by_chance), 0.0)
    reach = reach_of(level)
    steps = reach * (1 + (reach**2 + 1) / (4 * (np.maximum(hits - 1, 0) + trusted)))  # nearly Student's
    return FusedMeans(means, errors, others, 1 - rest + rest * weight, np.where(hits > 0, steps, reach))
