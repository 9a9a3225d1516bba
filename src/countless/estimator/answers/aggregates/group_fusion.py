"""Counts of groups from the model and the evidence together.

The model predicts how a condition's ``total`` rows are divided among groups: the prior. It errs by a factor, of which
the calibration knows the spread sigma for counts of that size: a Gamma distribution of ``1 / sigma**2`` pseudo-hits.
The evidence has some hits in the group, a Poisson number, so that the posterior is a Gamma distribution too. A tenth of
the prior is much wider: where the hits contradict the model, they decide. What comes out is made to add up to the
total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from countless.arrays import FloatArray
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import LEAST_ESTIMATE, LEVELS_PER_E, Calibration, Shape

LEAST_SIGMA, MOST_SIGMA = 0.05, 2.0  # of the model's error
WIDE_SIGMA, WIDE_WEIGHT = 3.0, 0.1  # of the prior that applies where the model fails
LEAST_PRIOR = 1.0  # rows of a group that has hits, though the model gives it fewer
HALF_A_HIT = 0.5
CAUTION = 1.1  # how much wider bars are than if errors were as they are believed to be

log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The rows of groups, and between which numbers they should lie."""

    rows: FloatArray
    low: FloatArray
    high: FloatArray


def model_errors(calibration: Calibration, rows: FloatArray, shape: Shape) -> FloatArray:
    """The standard error of the model's answers to questions of ``shape``, as the logarithm of a factor."""
    levels, which = np.unique(
        np.rint(np.log(np.maximum(rows, LEAST_ESTIMATE)) * LEVELS_PER_E).astype(np.int64), return_inverse=True
    )
    found = [calibration.spread(math.exp(level / LEVELS_PER_E), shape) for level in levels.tolist()]
    errors: FloatArray = np.clip(np.array(found), LEAST_SIGMA, MOST_SIGMA)[which]
    return errors


def fused_counts(prior: FloatArray, hits: FloatArray, total: Estimate, count: int, errors: FloatArray) -> GroupCounts:
    """The rows of groups that have ``hits`` among all ``count``, where the model says ``prior`` and errs by ``errors``.

    Groups need not hold all rows, nor all hits; what they hold adds up to ``total`` with the rest.
    """
    groups = len(prior)
    rest, missed = max(total.rows - float(prior.sum()), 0.0), max(count - float(hits.sum()), 0.0)
    prior, hits = np.append(prior, rest), np.append(hits, missed)
    errors = np.append(errors, errors.max(initial=LEAST_SIGMA))
    prior = np.where(hits > 0, np.maximum(prior, LEAST_PRIOR), prior)
    exposure = min(count / total.rows, 1.0) if total.rows > 0 else 0.0
    mean, variance = _posterior(prior, hits, exposure, errors)
    return _spread(mean, variance, hits, total, count, groups)


def counts_of_hits(hits: FloatArray, total: Estimate, count: int) -> GroupCounts:
    """The rows of groups that only the evidence knows, by their ``hits`` among all ``count``."""
    groups = len(hits)
    hits = np.append(hits, max(count - float(hits.sum()), 0.0))
    exposure = max(min(count / total.rows, 1.0), 1e-12) if total.rows > 0 else 1.0
    variance = (1 - exposure) * (hits + HALF_A_HIT) / exposure**2
    return _spread(hits / exposure, variance, hits, total, count, groups)


def reach_of(level: float) -> float:
    """How many standard errors to either side hold ``level`` of a normal distribution, and a little more."""
    return CAUTION * NormalDist().inv_cdf(0.5 + level / 2)


def _posterior(
    prior: FloatArray, hits: FloatArray, exposure: float, errors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of how many rows each group has, before they are made to add up.

    The more rows of a group were drawn, the more its hits say; if all were drawn, pseudo-hits have no weight.
    """
    likely = prior > 0
    means, variances = np.zeros(len(prior)), np.zeros(len(prior))
    rows, seen, expected = prior[likely], hits[likely], exposure * prior[likely]
    parts = []
    for weight, sigma in ((1 - WIDE_WEIGHT, errors[likely]), (WIDE_WEIGHT, np.maximum(errors[likely], WIDE_SIGMA))):
        strength = sigma**-2.0
        chance = (  # of this number of hits: negative binomial
            math.log(weight)
            + _log_rising(strength, seen)
            - strength * np.log1p(expected / strength)
            - seen * np.log1p(strength / np.maximum(expected, 1e-300))
        )
        strength = (1 - exposure) * strength
        known = np.maximum(strength + expected, 1e-300)
        mean = rows * (strength + seen) / known
        parts.append((chance, mean, (1 - exposure) * mean * rows / known))
    narrow = 1 / (1 + np.exp(np.clip(parts[1][0] - parts[0][0], -700, 700)))
    mean = narrow * parts[0][1] + (1 - narrow) * parts[1][1]
    means[likely] = mean
    variances[likely] = sum(
        share * (variance + (own - mean) ** 2)
        for share, (_, own, variance) in zip((narrow, 1 - narrow), parts, strict=True)
    )
    return means, variances


def _log_rising(strength: FloatArray, seen: FloatArray) -> FloatArray:
    """The logarithm of ``strength * (strength + 1) * ...``, ``seen`` factors: most groups have none."""
    logs: FloatArray = np.zeros(len(seen))
    some = seen > 0
    logs[some] = log_gamma(strength[some] + seen[some]) - log_gamma(strength[some])
    return logs


def _spread(
    mean: FloatArray, variance: FloatArray, hits: FloatArray, total: Estimate, count: int, groups: int
) -> GroupCounts:
    """Counts that add up to the total, with at least its hits for each group.

    The bars are quantiles of a Gamma distribution with the posterior's mean and variance: by Wilson and Hilferty, its
    cube root is nearly normal.
    """
    everything = float(mean.sum())
    shares = mean / everything if everything > 0 else mean
    others = np.maximum(total.rows * shares - hits, 0.0)
    unseen, spare = max(total.rows - count, 0.0), float(others.sum())
    rows = hits + (others * (unseen / spare) if spare > 0 else unseen * shares)
    reach = reach_of(total.level)
    off = math.log((total.high + 1) / (total.low + 1)) / (2 * reach)  # the standard error of the total
    # Of a group that holds nearly all rows, only the total is uncertain.
    spread = (1 - shares) * variance + (rows * off) ** 2
    strength = np.maximum(np.divide(rows**2, spread, out=np.ones(len(rows)), where=spread > 0), 1e-6)
    center, step = 1 - 1 / (9 * strength), reach / (3 * np.sqrt(strength))
    low = np.maximum(np.floor(rows * np.maximum(center - step, 0) ** 3), hits)
    high = np.minimum(np.ceil(rows * np.maximum(center + step, 0) ** 3), max(total.high, total.rows))
    uncertain = spread > 0
    low, high = np.where(uncertain, np.minimum(low, rows), rows), np.where(uncertain, np.maximum(high, rows), rows)
    return GroupCounts(rows[:groups], low[:groups], high[:groups])
