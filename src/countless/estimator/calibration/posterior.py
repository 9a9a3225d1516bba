"""The posterior of a row count: the model's estimate and the evidence rows as one distribution.

Evidence rows are ``rows`` random rows of a table of ``total`` rows, and ``hits`` of them satisfy a condition. For every
count in the whole table, this has a likelihood. The prior is the model's estimate, spread by the errors that the model
made for questions with known counts. The posterior is a list of counts with cumulative probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from countless.arrays import FloatArray
from countless.engine.columns.kernel import compiled
from countless.estimator.calibration.conformal import Calibration, Shape, sorted_quantiles
from countless.record import record

STRATA = np.array([-1.282, -0.524, 0.0, 0.524, 1.282])  # points of a normal distribution, to smooth each error
LEAST_WIDTH = 0.03  # of smoothing, in logarithms of counts, so that no prior overrules many hits
DOUBT = 0.05  # weight of the prior's uniform part, for questions whose error is unlike all known ones
AROUND, REACH = 61, 6.0  # number of counts around the hits' estimate, and their range in standard deviations
BETWEEN = 121  # number of counts between bounds, if few of the others are within the bounds
NO_ERRORS = np.empty(0)
GRID = np.linspace(0.0, 1.0, AROUND)
LEAST_COUNT = 0.5  # rows; smaller counts are equal
# With k hits and a model whose error is s, the error of both together is 1 / sqrt(k + 1 / s**2). From this many times
# 1 / s**2 hits on, the model makes an estimate better by less than a tenth.
ENOUGH = 5.0
MOST_USEFUL = 2_000  # hits from which the model is not asked, because the sample's error is about 2%
CAUTION = 0.2  # bars leave out this much less than the level allows, because new questions vary
TAILS = (0.001, 0.045)  # the least and the most that an error bar may leave out on either side
LEAST_QUERIES = 50


@record()
class SampleCount:
    """The ``count`` of evidence rows that satisfy a condition, among ``rows`` that are a sample of ``total`` rows.

    If ``total`` is an estimate, it may be wrong by a factor of ``slack``.
    """

    count: int
    rows: int
    total: int
    slack: float = 1.0

    @property
    def are_all(self) -> bool:
        """Whether the sample has all rows, so that the count is exact."""
        return self.rows >= self.total

    @property
    def others(self) -> SampleCount:
        """The rows that do not satisfy the condition."""
        return SampleCount(self.rows - self.count, self.rows, self.total)

    @property
    def share(self) -> float:
        """The size of the sample as a share of the total."""
        return self.rows / self.total

    def log_likelihood(self, counts: FloatArray) -> FloatArray:
        """The logarithm of the likelihood of these hits for each count in the table (hypergeometric)."""
        hits, misses = float(self.count), float(self.rows - self.count)
        others = self.total - counts
        possible = (counts >= hits) & (others >= misses)
        matching, rest = np.maximum(counts, hits), np.maximum(others, misses)
        logs = log_factorial(np.stack([matching, matching - hits, rest, rest - misses]))  # one call: arrays are short
        constant = math.lgamma(hits + 1.0) + math.lgamma(misses + 1.0)
        likelihoods = logs[0] - logs[1] + logs[2] - logs[3] - constant
        log_likelihoods: FloatArray = np.where(possible, likelihoods, -np.inf)
        return log_likelihoods

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest count that these hits allow."""
        return float(self.count), float(self.total - self.rows + self.count)


@record()
class Posterior:
    """Sorted counts, and the cumulative probability ``below`` each."""

    counts: FloatArray
    below: FloatArray

    def of_others(self, total: float) -> Posterior:
        """The posterior of the count of all other rows, of ``total`` rows."""
        return Posterior(np.maximum(total - self.counts[::-1], LEAST_COUNT), 1.0 - self.below[::-1])

    def quantile(self, share: float) -> float:
        """The count at this share of the probability."""
        return self.quantiles((share,))[0]

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The counts at these shares of the probability."""
        counts, below, last = self.counts, self.below, len(self.counts) - 1
        quantiles = []
        for share, after in zip(shares, below.searchsorted(shares, side="right").tolist(), strict=True):
            if after == 0 or after > last:  # beyond either end
                quantiles.append(float(counts[min(after, last)]))
                continue
            start, end = float(below[after - 1]), float(below[after])
            low, high = math.log(counts[after - 1]), math.log(counts[after])
            quantiles.append(math.exp(low + (share - start) * ((high - low) / (end - start))))
        return quantiles

    def probability(self, rows: float) -> float:
        """The probability that the count is less than ``rows``."""
        return float(np.interp(math.log(max(rows, LEAST_COUNT)), np.log(self.counts), self.below))


def posterior(
    hits: SampleCount, answer: float | None, errors: FloatArray | None, least: float, most: float
) -> Posterior:
    """The posterior from hits and the model's ``answer``; without an answer, from the hits alone.

    ``errors`` are ``log(truth / answer)`` of similar questions. Exact counts limit the count to ``least`` to ``most``.
    """
    if answer is None and hits.count > hits.rows / 2:  # most rows match: count the others instead
        others = posterior(hits.others, None, None, hits.total - most, hits.total - least)
        return others.of_others(hits.total)
    module = compiled()
    if module is None:
        return posterior_by_numpy(hits, answer, errors, least, most)
    model_errors = NO_ERRORS if answer is None or errors is None else errors
    counts, below = np.empty((2, max(len(STRATA) * len(model_errors) + AROUND, BETWEEN)))
    size = module.posterior(hits.count, hits.rows, hits.total, least, most, model_errors, answer or 0.0, counts, below)
    return Posterior(counts[:size], below[:size])


def posterior_by_numpy(
    hits: SampleCount, answer: float | None, errors: FloatArray | None, least: float, most: float
) -> Posterior:
    """The posterior computed by NumPy: the readable twin of the compiled :func:`posterior`."""
    logs, weights = _around(hits)
    prior = None if answer is None or errors is None else Prior(math.log(max(answer, 1.0)) + errors)
    if prior is None:
        weights = weights * np.exp((logs - logs[-1]) / 2)  # Jeffreys' prior: without hits there may still be rows
    else:
        points, doubt = prior.points, DOUBT / math.log(max(hits.total, 3))
        logs = np.concatenate([points, logs])
        weights = np.concatenate([np.full(len(points), (1.0 - DOUBT) / len(points)), doubt * weights])
    least, most = max(least, hits.bounds[0], LEAST_COUNT), max(min(most, hits.bounds[1]), LEAST_COUNT)
    most = max(least, most)
    counts = np.exp(logs)
    inside = (counts >= least) & (counts <= most)
    if 2 * np.count_nonzero(inside) >= len(counts):
        return _weighted(hits, counts[inside], weights[inside])
    # Too few counts are within the bounds to describe the posterior there: use a finer grid between the bounds.
    possible = logs[inside] if inside.any() else np.log([least, most])
    grid = np.linspace(max(possible.min() - 1.0, math.log(least)), min(possible.max() + 1.0, math.log(most)), BETWEEN)
    weights = np.exp((grid - grid[-1]) / 2) if prior is None else (1.0 - DOUBT) * prior.density(grid) + doubt
    return _weighted(hits, np.exp(grid), weights)


class Prior:
    """The prior: logarithms of counts, one for each of the model's errors, smoothed."""

    def __init__(self, logs: FloatArray) -> None:
        self._logs, self._width = logs, _width(logs)

    @property
    def points(self) -> FloatArray:
        """Equally likely logarithms of counts."""
        points: FloatArray = (self._logs[:, None] + self._width * STRATA).ravel()
        return points

    def density(self, logs: FloatArray) -> FloatArray:
        """The probability density at each logarithm."""
        distances = (logs[:, None] - self._logs) / self._width  # (logs, errors)
        density: FloatArray = np.exp(-(distances**2) / 2).mean(axis=1) / (self._width * math.sqrt(2 * math.pi))
        return density


def is_enough(hits: SampleCount, shape: Shape, calibration: Calibration) -> bool:
    """Whether there are enough hits, so that the model would hardly make the estimate better."""
    if hits.count == 0 or hits.count >= MOST_USEFUL:
        return hits.count > 0
    spread = calibration.spread((hits.count + 0.5) / hits.share, shape)
    miss_share = (hits.rows - hits.count + 0.5) / (hits.rows + 1.0)  # the smaller, the more exact is the count of hits
    return hits.count * spread**2 >= ENOUGH * miss_share


def left_out_posteriors(calibration: Calibration, rows: int, total: int) -> Iterator[Posterior]:
    """The posterior of each calibration query, by the errors of the other queries.

    The table has ``total`` rows, of which ``rows`` are evidence.
    """
    for index, query in enumerate(calibration.queries):
        hits = SampleCount(query.hits, rows, total)
        if hits.are_all or (not query.shape.steps and is_enough(hits, query.shape, calibration)):
            yield posterior(hits, None, None, 0.0, total)
        else:
            errors = calibration.errors(query.estimate, query.shape, without=index)
            yield posterior(hits, query.estimate, errors, 0.0, total)


def with_tail(calibration: Calibration, rows: int, total: int) -> Calibration:
    """The calibration with the tail for which error bars hold for its own queries, each judged by the others.

    The table has ``total`` rows, of which ``rows`` are evidence.
    """
    if len(calibration.queries) < LEAST_QUERIES:
        return calibration
    tails = []  # the largest tail for which the bar of each query still includes the truth
    for query, distribution in zip(calibration.queries, left_out_posteriors(calibration, rows, total), strict=True):
        truth = max(query.rows, 1)
        tails.append(min(distribution.probability(truth + 0.5), 1.0 - distribution.probability(truth - 0.5)))
    share = 1.0 - (calibration.level + (1.0 - calibration.level) * CAUTION)
    return replace(calibration, tail=float(np.clip(np.quantile(tails, share), *TAILS)))


def _weighted(hits: SampleCount, counts: FloatArray, weights: FloatArray) -> Posterior:
    """The posterior of ``counts`` whose prior probabilities are ``weights``."""
    log_likelihoods = hits.log_likelihood(counts)
    top = log_likelihoods.max()
    if np.isfinite(top):
        weights = weights * np.exp(log_likelihoods - top)
    order = np.argsort(counts, kind="stable")
    counts, weights = counts[order], weights[order]
    below = np.cumsum(weights) - weights / 2
    return Posterior(counts, below / weights.sum())


def _around(hits: SampleCount) -> tuple[FloatArray, FloatArray]:
    """Equidistant logarithms of counts around the estimate by hits alone, and the length that each stands for."""
    if not hits.rows:  # there is no sample
        logs = np.linspace(math.log(LEAST_COUNT), math.log(max(hits.total, 1)), AROUND)
        return logs, np.full(AROUND, (logs[-1] - logs[0]) / AROUND)
    expected_hits = hits.count + 0.5
    deviation = math.sqrt(max(expected_hits * (1.0 - hits.share) * (1.0 - hits.count / hits.rows), 0.25))
    high = math.log((expected_hits + REACH * deviation + 4.0 * (hits.count < 10)) / hits.share)
    low = math.log(max(expected_hits - REACH * deviation, LEAST_COUNT * hits.share) / hits.share)
    low, high = max(low, math.log(LEAST_COUNT)), min(high, math.log(hits.total))
    return low + (high - low) * GRID, np.full(AROUND, (high - low) / AROUND)


def _width(errors: FloatArray) -> float:
    """The width of smoothing: Silverman's rule, for a distribution with tails."""
    low, high = sorted_quantiles(np.sort(errors), (0.25, 0.75))
    distances = errors - np.add.reduce(errors) / len(errors)
    spread = min(math.sqrt(float(distances @ distances) / len(errors)), (high - low) / 1.34)
    return float(max(LEAST_WIDTH, 0.9 * spread * len(errors) ** -0.2))


def log_factorial(numbers: FloatArray) -> FloatArray:
    """The logarithm of the factorial of numbers, whole or not, by Stirling's series from 8 on.

    >>> np.exp(log_factorial(np.array([0.0, 3.0, 10.0]))).round(3).tolist()
    [1.0, 6.0, 3628800.0]
    """
    shifted = numbers + 8.0
    inverse = 1.0 / shifted
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    stirling = (shifted + 0.5) * np.log(shifted) - shifted + 0.5 * math.log(2 * math.pi) + series
    square = numbers * (numbers + 9.0)
    product = (
        (square + 8.0) * (square + 14.0) * (square + 18.0) * (square + 20.0)
    )  # (n + 1) (n + 8), (n + 2) (n + 7) ...
    logs: FloatArray = stirling - np.log(product)
    return logs
