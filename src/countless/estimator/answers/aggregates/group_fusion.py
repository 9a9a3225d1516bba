"""Counts of groups from the model and the evidence together.

The prior is the model's prediction of how a condition's ``total`` rows are divided among groups. It is wrong by a
factor. The calibration tells the factor's standard deviation sigma for counts of that size, so the prior is a Gamma
distribution with ``1 / sigma**2`` pseudo-hits. The number of hits in a group is Poisson distributed, so the posterior
is a Gamma distribution too. A tenth of the prior's weight is on a much wider distribution, so that the hits decide
where they contradict the model. The counts are scaled to add up to the total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from countless.arrays import FloatArray
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import LEAST_ESTIMATE, LEVELS_PER_E, Calibration, Shape

LEAST_SIGMA, MOST_SIGMA = 0.05, 2.0  # bounds of the model's error
WIDE_SIGMA, WIDE_WEIGHT = 3.0, 0.1  # of the wide part of the prior, for groups where the model fails
LEAST_PRIOR = 1.0  # rows that the prior gives at least to a group that has hits
HALF_A_HIT = 0.5
CAUTION = 1.1  # bars are this much wider than the estimated errors require

log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The rows of groups, with the ends of their error bars."""

    rows: FloatArray
    low: FloatArray
    high: FloatArray


def model_errors(calibration: Calibration, rows: FloatArray, shape: Shape) -> FloatArray:
    """The standard error of the model's answers to questions of ``shape``, as the logarithm of a factor."""
    levels, level_indexes = np.unique(
        np.rint(np.log(np.maximum(rows, LEAST_ESTIMATE)) * LEVELS_PER_E).astype(np.int64), return_inverse=True
    )
    level_errors = [calibration.spread(math.exp(level / LEVELS_PER_E), shape) for level in levels.tolist()]
    errors: FloatArray = np.clip(np.array(level_errors), LEAST_SIGMA, MOST_SIGMA)[level_indexes]
    return errors


def fused_counts(prior: FloatArray, hits: FloatArray, total: Estimate, count: int, errors: FloatArray) -> GroupCounts:
    """The rows of groups, from the model's ``prior`` with its ``errors``, and their ``hits`` among all ``count`` hits.

    Rows and hits that are in none of the groups are one more group, so that all add up to ``total``.
    """
    groups = len(prior)
    other_rows, other_hits = max(total.rows - float(prior.sum()), 0.0), max(count - float(hits.sum()), 0.0)
    prior, hits = np.append(prior, other_rows), np.append(hits, other_hits)
    errors = np.append(errors, errors.max(initial=LEAST_SIGMA))
    prior = np.where(hits > 0, np.maximum(prior, LEAST_PRIOR), prior)
    exposure = min(count / total.rows, 1.0) if total.rows > 0 else 0.0
    mean, variance = _posterior(prior, hits, exposure, errors)
    return _add_up(mean, variance, hits, total, count, groups)


def counts_of_hits(hits: FloatArray, total: Estimate, count: int) -> GroupCounts:
    """The rows of groups from evidence rows alone: their ``hits`` among all ``count`` hits."""
    groups = len(hits)
    hits = np.append(hits, max(count - float(hits.sum()), 0.0))
    exposure = max(min(count / total.rows, 1.0), 1e-12) if total.rows > 0 else 1.0
    variance = (1 - exposure) * (hits + HALF_A_HIT) / exposure**2
    return _add_up(hits / exposure, variance, hits, total, count, groups)


def reach_of(level: float) -> float:
    """The half length of an error bar, in standard errors: that of a normal distribution, times CAUTION."""
    return CAUTION * NormalDist().inv_cdf(0.5 + level / 2)


def _posterior(
    prior: FloatArray, hits: FloatArray, exposure: float, errors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the number of rows of each group, before the numbers are made to add up.

    ``exposure`` is the share of rows that are evidence rows. If it is 1, pseudo-hits have no weight.
    """
    likely = prior > 0
    means, variances = np.zeros(len(prior)), np.zeros(len(prior))
    rows, group_hits, expected = prior[likely], hits[likely], exposure * prior[likely]
    components = []
    for weight, sigma in ((1 - WIDE_WEIGHT, errors[likely]), (WIDE_WEIGHT, np.maximum(errors[likely], WIDE_SIGMA))):
        strength = sigma**-2.0
        log_likelihood = (  # of this number of hits: negative binomial
            math.log(weight)
            + _log_rising(strength, group_hits)
            - strength * np.log1p(expected / strength)
            - group_hits * np.log1p(strength / np.maximum(expected, 1e-300))
        )
        strength = (1 - exposure) * strength
        expected_hits = np.maximum(strength + expected, 1e-300)
        mean = rows * (strength + group_hits) / expected_hits
        components.append((log_likelihood, mean, (1 - exposure) * mean * rows / expected_hits))
    narrow_share = 1 / (1 + np.exp(np.clip(components[1][0] - components[0][0], -700, 700)))
    mean = narrow_share * components[0][1] + (1 - narrow_share) * components[1][1]
    means[likely] = mean
    variances[likely] = sum(
        share * (variance + (component_mean - mean) ** 2)
        for share, (_, component_mean, variance) in zip((narrow_share, 1 - narrow_share), components, strict=True)
    )
    return means, variances


def _log_rising(strength: FloatArray, hits: FloatArray) -> FloatArray:
    """The logarithm of ``strength * (strength + 1) * ...`` with ``hits`` factors. Most groups have no hits."""
    logs: FloatArray = np.zeros(len(hits))
    has_hits = hits > 0
    logs[has_hits] = log_gamma(strength[has_hits] + hits[has_hits]) - log_gamma(strength[has_hits])
    return logs


def _add_up(
    mean: FloatArray, variance: FloatArray, hits: FloatArray, total: Estimate, count: int, groups: int
) -> GroupCounts:
    """Counts that add up to the total; each group has at least as many rows as hits.

    The bars are quantiles of a Gamma distribution with the posterior's mean and variance. Its cube root is nearly
    normal (Wilson and Hilferty).
    """
    sum_of_means = float(mean.sum())
    shares = mean / sum_of_means if sum_of_means > 0 else mean
    expected_unseen = np.maximum(total.rows * shares - hits, 0.0)
    unseen, sum_of_unseen = max(total.rows - count, 0.0), float(expected_unseen.sum())
    rows = hits + (expected_unseen * (unseen / sum_of_unseen) if sum_of_unseen > 0 else unseen * shares)
    reach = reach_of(total.level)
    total_error = math.log((total.high + 1) / (total.low + 1)) / (2 * reach)
    # If a group has nearly all rows, only the total is uncertain.
    spread = (1 - shares) * variance + (rows * total_error) ** 2
    strength = np.maximum(np.divide(rows**2, spread, out=np.ones(len(rows)), where=spread > 0), 1e-6)
    center, step = 1 - 1 / (9 * strength), reach / (3 * np.sqrt(strength))
    low = np.maximum(np.floor(rows * np.maximum(center - step, 0) ** 3), hits)
    high = np.minimum(np.ceil(rows * np.maximum(center + step, 0) ** 3), max(total.high, total.rows))
    uncertain = spread > 0
    low, high = np.where(uncertain, np.minimum(low, rows), rows), np.where(uncertain, np.maximum(high, rows), rows)
    return GroupCounts(rows[:groups], low[:groups], high[:groups])
