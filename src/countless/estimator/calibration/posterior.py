"""The posterior of a count: what the model says, and what the evidence rows say, as one distribution.

Of ``rows`` random rows of a table of ``total``, ``hits`` satisfy a condition: that has a likelihood for every number of
rows that may satisfy it in the table. The model's answer is the prior, as far as it is to be trusted: it is spread by
the errors that the model made at questions with known answers. The posterior is a list of counts with weights.
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

STRATA = np.array([-1.282, -0.524, 0.0, 0.524, 1.282])  # of a normal distribution: each error is smoothed to this many
LEAST_WIDTH = 0.03  # of smoothing, in logarithms of counts: no prior may overrule many hits
DOUBT = 0.05  # of the prior: that the model's errors tell nothing about this question
AROUND, REACH = 61, 6.0  # counts where the hits alone say, and how many standard deviations they reach
BETWEEN = 121  # counts between bounds that leave few of the others
NO_ERRORS = np.empty(0)
EVENLY = np.linspace(0.0, 1.0, AROUND)
LEAST_COUNT = 0.5  # rows: below, counts are alike
# With k hits, and a model that errs by s, both together err by 1 / sqrt(k + 1 / s**2): from this many times 1 / s**2
# hits on, the model makes an answer better by less than a tenth.
ENOUGH = 5.0
MOST_USEFUL = 2_000  # hits, from which no model is asked: the sample errs by about 2%
CAUTION = 0.2  # of what a level leaves out, this much is not left out: fresh questions vary
TAILS = (0.001, 0.045)  # that an error bar may leave out on either side
LEAST_QUERIES = 50


@record()
class SampleCount:
    """How many of the evidence rows satisfy a condition, and of how many rows of the table they are a sample.

    If that is known only roughly, there may be more, or fewer, by a factor of ``slack``.
    """

    count: int
    rows: int
    total: int
    slack: float = 1.0

    @property
    def are_all(self) -> bool:
        """Whether the sample is the whole table, so that it tells the count."""
        return self.rows >= self.total

    @property
    def others(self) -> SampleCount:
        """The rows that do not satisfy the condition."""
        return SampleCount(self.rows - self.count, self.rows, self.total)

    @property
    def share(self) -> float:
        """Rows of the sample for each row of the table."""
        return self.rows / self.total

    def log_likelihood(self, counts: FloatArray) -> FloatArray:
        """Of each number of rows in the table, the logarithm of the chance of these hits: hypergeometric."""
        hits, misses = float(self.count), float(self.rows - self.count)
        others = self.total - counts
        possible = (counts >= hits) & (others >= misses)
        here, there = np.maximum(counts, hits), np.maximum(others, misses)
        logs = log_factorial(np.stack([here, here - hits, there, there - misses]))  # all at once: they are short
        constant = math.lgamma(hits + 1.0) + math.lgamma(misses + 1.0)
        found = logs[0] - logs[1] + logs[2] - logs[3] - constant
        chances: FloatArray = np.where(possible, found, -np.inf)
        return chances

    @property
    def bounds(self) -> tuple[float, float]:
        """Counts of rows that these hits allow."""
        return float(self.count), float(self.total - self.rows + self.count)


@record()
class Posterior:
    """Counts of rows, rising, and the probability up to each."""

    counts: FloatArray
    below: FloatArray

    def of_others(self, total: float) -> Posterior:
        """The same about the other rows, of ``total`` in all."""
        return Posterior(np.maximum(total - self.counts[::-1], LEAST_COUNT), 1.0 - self.below[::-1])

    def quantile(self, share: float) -> float:
        """The count that so much of the probability is below."""
        return self.quantiles((share,))[0]

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The counts that so much of the probability is below."""
        counts, below, last = self.counts, self.below, len(self.counts) - 1
        found = []
        for share, after in zip(shares, below.searchsorted(shares, side="right").tolist(), strict=True):
            if after == 0 or after > last:  # beyond either end
                found.append(float(counts[min(after, last)]))
                continue
            start, end = float(below[after - 1]), float(below[after])
            low, high = math.log(counts[after - 1]), math.log(counts[after])
            found.append(math.exp(low + (share - start) * ((high - low) / (end - start))))
        return found

    def probability(self, rows: float) -> float:
        """How likely there are fewer rows than these."""
        return float(np.interp(math.log(max(rows, LEAST_COUNT)), np.log(self.counts), self.below))


def posterior(
    hits: SampleCount, answer: float | None, errors: FloatArray | None, least: float, most: float
) -> Posterior:
    """What hits and the model's ``answer`` say together.

    ``errors`` are logarithms of true counts to the model's answers, of questions like this. Without an answer, only the
    hits say something. Exact counts tell that there are ``least`` to ``most`` rows.
    """
    if answer is None and hits.count > hits.rows / 2:  # nearly all rows: count the others instead
        others = posterior(hits.others, None, None, hits.total - most, hits.total - least)
        return others.of_others(hits.total)
    module = compiled()
    if module is None:
        return posterior_by_numpy(hits, answer, errors, least, most)
    given = NO_ERRORS if answer is None or errors is None else errors
    counts, below = np.empty((2, max(len(STRATA) * len(given) + AROUND, BETWEEN)))
    size = module.posterior(hits.count, hits.rows, hits.total, least, most, given, answer or 0.0, counts, below)
    return Posterior(counts[:size], below[:size])


def posterior_by_numpy(
    hits: SampleCount, answer: float | None, errors: FloatArray | None, least: float, most: float
) -> Posterior:
    """The same, without the compiled module."""
    logs, weights = _around(hits)
    prior = None if answer is None or errors is None else Prior(math.log(max(answer, 1.0)) + errors)
    if prior is None:
        weights = weights * np.exp((logs - logs[-1]) / 2)  # Jeffreys: no hits still allow for some rows
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
    # So few counts do not tell how the posterior runs between the bounds: their own place would pass for its width.
    some = logs[inside] if inside.any() else np.log([least, most])
    line = np.linspace(max(some.min() - 1.0, math.log(least)), min(some.max() + 1.0, math.log(most)), BETWEEN)
    weights = np.exp((line - line[-1]) / 2) if prior is None else (1.0 - DOUBT) * prior.density(line) + doubt
    return _weighted(hits, np.exp(line), weights)


class Prior:
    """Logarithms of counts that the model's answer stands for, one for each of its errors, smoothed."""

    def __init__(self, logs: FloatArray) -> None:
        self._logs, self._width = logs, _width(logs)

    @property
    def points(self) -> FloatArray:
        """Equally likely logarithms of counts."""
        found: FloatArray = (self._logs[:, None] + self._width * STRATA).ravel()
        return found

    def density(self, logs: FloatArray) -> FloatArray:
        """How likely each logarithm is, for each unit of logarithms."""
        away = (logs[:, None] - self._logs) / self._width  # (logs, errors)
        found: FloatArray = np.exp(-(away**2) / 2).mean(axis=1) / (self._width * math.sqrt(2 * math.pi))
        return found


def is_enough(hits: SampleCount, shape: Shape, calibration: Calibration) -> bool:
    """Whether the hits tell so much that the model could hardly make an answer better."""
    if hits.count == 0 or hits.count >= MOST_USEFUL:
        return hits.count > 0
    spread = calibration.spread((hits.count + 0.5) / hits.share, shape)
    others = (hits.rows - hits.count + 0.5) / (hits.rows + 1.0)  # the fewer, the more exactly hits tell the count
    return hits.count * spread**2 >= ENOUGH * others


def left_out_posteriors(calibration: Calibration, rows: int, total: int) -> Iterator[Posterior]:
    """The posterior of each calibration query, by the errors at the other queries.

    ``rows`` of the table's ``total`` are evidence.
    """
    for index, query in enumerate(calibration.queries):
        hits = SampleCount(query.hits, rows, total)
        if hits.are_all or (not query.shape.steps and is_enough(hits, query.shape, calibration)):
            yield posterior(hits, None, None, 0.0, total)
        else:
            errors = calibration.errors(query.estimate, query.shape, without=index)
            yield posterior(hits, query.estimate, errors, 0.0, total)


def with_tail(calibration: Calibration, rows: int, total: int) -> Calibration:
    """The calibration with error bars of posteriors that hold its own queries, each judged by the others.

    ``rows`` of the table's ``total`` are evidence.
    """
    if len(calibration.queries) < LEAST_QUERIES:
        return calibration
    left_out = []
    for query, found in zip(calibration.queries, left_out_posteriors(calibration, rows, total), strict=True):
        truth = max(query.rows, 1)
        left_out.append(min(found.probability(truth + 0.5), 1.0 - found.probability(truth - 0.5)))
    share = 1.0 - (calibration.level + (1.0 - calibration.level) * CAUTION)
    return replace(calibration, tail=float(np.clip(np.quantile(left_out, share), *TAILS)))


def _weighted(hits: SampleCount, counts: FloatArray, weights: FloatArray) -> Posterior:
    chances = hits.log_likelihood(counts)
    top = chances.max()
    if np.isfinite(top):
        weights = weights * np.exp(chances - top)
    order = np.argsort(counts, kind="stable")
    counts, weights = counts[order], weights[order]
    below = np.cumsum(weights) - weights / 2
    return Posterior(counts, below / weights.sum())


def _around(hits: SampleCount) -> tuple[FloatArray, FloatArray]:
    """Logarithms of counts near what hits alone say, evenly, and how much of that line each stands for."""
    if not hits.rows:  # nothing is said
        logs = np.linspace(math.log(LEAST_COUNT), math.log(max(hits.total, 1)), AROUND)
        return logs, np.full(AROUND, (logs[-1] - logs[0]) / AROUND)
    many = hits.count + 0.5
    deviation = math.sqrt(max(many * (1.0 - hits.share) * (1.0 - hits.count / hits.rows), 0.25))
    high = math.log((many + REACH * deviation + 4.0 * (hits.count < 10)) / hits.share)
    low = math.log(max(many - REACH * deviation, LEAST_COUNT * hits.share) / hits.share)
    low, high = max(low, math.log(LEAST_COUNT)), min(high, math.log(hits.total))
    return low + (high - low) * EVENLY, np.full(AROUND, (high - low) / AROUND)


def _width(errors: FloatArray) -> float:
    """How far each error is smoothed: Silverman's rule, for a distribution with tails."""
    low, high = sorted_quantiles(np.sort(errors), (0.25, 0.75))
    away = errors - np.add.reduce(errors) / len(errors)
    spread = min(math.sqrt(float(away @ away) / len(errors)), (high - low) / 1.34)
    return float(max(LEAST_WIDTH, 0.9 * spread * len(errors) ** -0.2))


def log_factorial(numbers: FloatArray) -> FloatArray:
    """The logarithm of the factorial of numbers, whole or not, by Stirling's series from 8 on.

    >>> np.exp(log_factorial(np.array([0.0, 3.0, 10.0]))).round(3).tolist()
    [1.0, 6.0, 3628800.0]
    """
    shifted = numbers + 8.0
    inverse = 1.0 / shifted
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    whole = (shifted + 0.5) * np.log(shifted) - shifted + 0.5 * math.log(2 * math.pi) + series
    square = numbers * (numbers + 9.0)
    product = (
        (square + 8.0) * (square + 14.0) * (square + 18.0) * (square + 20.0)
    )  # (n + 1) (n + 8), (n + 2) (n + 7) ...
    found: FloatArray = whole - np.log(product)
    return found
