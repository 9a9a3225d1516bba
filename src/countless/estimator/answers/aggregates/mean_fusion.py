"""Means of groups from the model and the evidence together.

The hits of a group are a sample of its rows, whose mean has a standard error. The model's mean has an error too. The
two are weighted by their errors. If they are further apart than the errors allow, the model is wrong, and its error is
taken to be as large as the distance. The hits themselves are rows of the table, so their values are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.estimator.answers.aggregates.group_fusion import reach_of

Rows = tuple[FloatArray, FloatArray]  # the number of rows of each group, and the most that it may have
LEAST_ERROR = 0.05  # of a model's mean, as a share of the deviation: 400 hits outweigh it
PSEUDO_HITS = 20.0  # weight of the model's deviation, because few hits have no reliable one
ENOUGH_HITS, MOST_RATIO = 30, 3.0  # from 30 hits on, the model's deviation is at most 3 times that of the hits


@dataclass(frozen=True, eq=False)
class FusedMeans:
    """For each group its mean, the standard error, and the mean of its rows that are not among the hits.

    ``weights`` is the weight of the hits in the group's distribution, ``reach`` the length of a bar's half in standard
    errors.
    """

    means: FloatArray
    errors: FloatArray
    unseen_means: FloatArray
    weights: FloatArray
    reach: FloatArray

    def ends(self, least: float, most: float) -> tuple[FloatArray, FloatArray]:
        """The ends of the error bars, cut at ``least`` and ``most`` unless the mean itself is outside."""
        half_length = self.reach * self.errors
        with np.errstate(invalid="ignore"):
            low, high = np.maximum(self.means - half_length, least), np.minimum(self.means + half_length, most)
            return np.fmin(low, self.means), np.fmax(high, self.means)


def fused_means(
    model: tuple[FloatArray, FloatArray, FloatArray],
    group_ids: IntArray,
    amounts: FloatArray,
    rows: Rows,
    level: float,
    least_variance: float = 0.0,
) -> FusedMeans:
    """The means of groups that have ``rows`` rows, from the ``amounts`` of their hits.

    ``group_ids`` has the group of each hit. ``model`` has the model's means, their standard errors, and the deviations
    of amounts within groups. A mean that the model does not know is NaN. It is replaced by the mean of all hits, with
    their deviation as its error. Amounts have a variance of at least ``least_variance``.
    """
    groups, (count, most) = len(rows[0]), rows
    hits = np.bincount(group_ids, minlength=groups).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        sample_mean = np.where(hits > 0, np.bincount(group_ids, amounts, groups) / hits, 0.0)
        squares = np.bincount(group_ids, (amounts - sample_mean[group_ids]) ** 2, groups)
        is_known = np.isfinite(model[0])
        mean, spread = (float(np.mean(amounts)), float(np.std(amounts))) if len(amounts) else (np.nan, np.nan)
        model_mean, model_error, deviation = (
            np.where(is_known, moment, default) for moment, default in zip(model, (mean, spread, spread), strict=True)
        )
        sample_variance = np.where(hits > 1, squares / np.maximum(hits - 1, 1), 0.0)
        is_reliable = (hits >= ENOUGH_HITS) & (sample_variance > 0)
        deviation = np.fmin(deviation, np.where(is_reliable, MOST_RATIO * np.sqrt(sample_variance), np.inf))
        pseudo_hits = np.where(is_known, PSEUDO_HITS, 1.0)
        pooled = ((hits - 1) * sample_variance + pseudo_hits * deviation**2) / np.maximum(hits - 1 + pseudo_hits, 1.0)
        variance = np.fmax(np.where(hits > 0, np.fmax(sample_variance, pooled), deviation**2), least_variance)
        # Squared standard errors of the two means.
        of_sample = np.where(hits > 0, variance / hits, np.inf)
        of_model = np.fmax(model_error, LEAST_ERROR * deviation) ** 2
        of_model = np.where(hits > 0, np.fmax(of_model, (sample_mean - model_mean) ** 2 - of_sample), of_model)
        weight = np.where(hits > 0, np.nan_to_num(1 / (1 + of_sample / of_model), nan=1.0), 0.0)
        unseen_means = weight * sample_mean + np.where(weight < 1, (1 - weight) * model_mean, 0.0)
        of_unseen = np.where(hits > 0, weight * of_sample, of_model)
        unseen, most_unseen = (
            np.where(group_rows > 0, np.clip(1 - hits / group_rows, 0.0, 1.0), 0.0) for group_rows in (count, most)
        )
        means = (1 - unseen) * sample_mean + np.where(unseen > 0, unseen * unseen_means, 0.0)
        means = np.where((hits > 0) | np.isfinite(model_mean), means, np.nan)
        by_chance = np.where(hits > 0, variance / np.maximum(most - hits, 1.0), 0.0)  # the model's error includes it
        errors = np.where(most_unseen > 0, most_unseen * np.sqrt(of_unseen + by_chance), 0.0)
    reach = reach_of(level)
    student_reach = reach * (1 + (reach**2 + 1) / (4 * (np.maximum(hits - 1, 0) + pseudo_hits)))  # approximately
    reaches = np.where(hits > 0, student_reach, reach)
    return FusedMeans(means, errors, unseen_means, 1 - unseen + unseen * weight, reaches)
