"""Means of groups from the model and the evidence together.

The hits of a group are a sample of its rows, whose mean has a standard error. The model has a mean too, with an error
of its own. They are weighed by these errors. Where the two are further apart than the errors allow, it is the model that
is wrong: its error is then taken to be as large as the distance. The hits are rows of the table, and count as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.estimator.answers.group_fusion import reach_of

FLOOR = 0.05  # a model's mean has an error of at least so much of the deviation: 400 hits outweigh it
PSEUDO_HITS = 20.0  # of the model's deviation: few hits do not tell their own


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
    rows: FloatArray,
    level: float,
) -> FusedMeans:
    """The means of groups that have so many ``rows``, from the ``amounts`` of their hits, each with its ``owner``.

    ``model`` has the means that the model says, their standard errors, and the deviations of amounts within groups; a
    mean that it does not know is NaN.
    """
    groups = len(rows)
    hits = np.bincount(owner, minlength=groups).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        sample = np.bincount(owner, amounts, groups) / hits
        squares = np.bincount(owner, (amounts - sample[owner]) ** 2, groups)
        said, error, deviation = model
        known = np.isfinite(said)
        fallback = float(np.std(amounts)) if len(amounts) else 0.0  # of all groups together
        deviation = np.where(known & np.isfinite(deviation), deviation, fallback)
        own = np.where(hits > 1, squares / np.maximum(hits - 1, 1), 0.0)
        trusted = np.where(known, PSEUDO_HITS, 1.0)
        pooled = ((hits - 1) * own + trusted * deviation**2) / np.maximum(hits - 1 + trusted, 1.0)
        variance = np.where(hits > 0, np.maximum(own, pooled), deviation**2)
        by_sample = variance / hits
        by_model = np.maximum(np.where(np.isfinite(error), error, np.inf), FLOOR * deviation) ** 2
        by_model = np.maximum(by_model, (sample - said) ** 2 - by_sample)
        weight = np.where(by_model + by_sample > 0, 1 / (1 + by_sample / by_model), 1.0)
        weight = np.where(known, np.where(hits > 0, weight, 0.0), 1.0)
        weight = np.where(np.isfinite(weight), weight, 1.0)
        others = np.where(known & (weight < 1), (1 - weight) * said, 0.0) + np.where(weight > 0, weight * sample, 0.0)
        uncertain = np.where(hits > 0, weight * by_sample, by_model)
        rest = np.clip(1 - hits / rows, 0.0, 1.0)  # of the rows are no hits
        rest = np.where(rows > 0, rest, 0.0)
        means = np.where(hits > 0, (1 - rest) * sample, 0.0) + np.where(rest > 0, rest * others, 0.0)
        means = np.where((hits > 0) | known, means, np.nan)
        by_chance = np.where(hits > 0, variance / np.maximum(rows - hits, 1.0), 0.0)  # the model's error has it already
        errors = np.where(rest > 0, rest * np.sqrt(uncertain + by_chance), 0.0)
    reach = reach_of(level)
    freedom = np.maximum(hits - 1, 0) + trusted
    steps = reach * (1 + (reach**2 + 1) / (4 * freedom))  # nearly Student's
    return FusedMeans(means, errors, others, 1 - rest + rest * weight, np.where(hits > 0, steps, reach))
