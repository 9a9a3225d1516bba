"""Estimates from evidence rows and the model together: the default way to answer.

The rows are counted first. Where they are many, the model could add little and is not asked; where they are few, or
none, its answer is the prior that the hits correct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from countless.arrays import FloatArray
from countless.cached_property import cached_property
from countless.engine.density import Density, densities
from countless.engine.methods import MODEL_METHOD
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.counts import estimate_of, is_certain, shape_of
from countless.estimator.answers.dependencies import Dependency
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import (
    UNKNOWN_ERRORS,
    UNKNOWN_SPREAD,
    Calibration,
    Shape,
    is_refuted,
    sorted_quantiles,
)
from countless.estimator.calibration.posterior import ENOUGH, Posterior, SampleCount, is_enough, posterior
from countless.query.question import Question
from countless.record import record

UNIQUE_ERRORS = np.log([1.0] * 46 + [2.0] * 3 + [3.0])  # of one row for each string that is asked for
NEAR = 1.1  # a factor between the end of an error bar and a bound
FEW_OTHERS = 30  # evidence rows that do not match text: then these are estimated
SMALL = 10.0  # rows of a question about text up to which the estimate is a whole number
ROUNDING = 1e-6  # of logarithms
# The larger the sample, the less is left to the prior: from this share of the table on, a walk of so few particles
# changes no q-error (docs/speed.md). Beside a smaller one the walk chooses their number.
LARGE_SAMPLE, FEW_PARTICLES = 0.25, 16
ODDS = 10  # guesses at the odds of filters that the model does not know


@record()
class Fusion:
    """What hits in evidence rows and a model say of one question.

    ``narrowed`` are the same hits among the rows of a part that was counted, if there is one.
    It is ``counted`` if exact counts, which the model's density is taken from then, tell the answer, and ``estimated``
    if counts give an estimate and bounds without the network. A model that is ``silent`` has no network
    of text, and no counts that tell about the patterns of the question. With ``unique`` it asks for whole strings of a
    column in which nearly all are different. With a ``dependency`` one filter decides the others.
    """

    question: Question
    hits: SampleCount
    narrowed: SampleCount
    calibration: Calibration
    counted: bool = False
    estimated: bool = False
    silent: bool = False
    unique: bool = False
    dependency: Dependency | None = None

    @cached_property
    def shape(self) -> Shape:
        """Which errors the model makes depends on it."""
        return shape_of(self.question)

    @property
    def asks_model(self) -> bool:
        """Whether the model can make the answer better."""
        hits = self.hits
        if self.silent or self.is_bound_reached:
            return False
        if self.counted or hits.are_all:
            return not hits.are_all
        if self.estimated:  # for the bounds, at least
            return True
        if self.question.among is not None:  # it knows of the other filters only
            few = hits.count * UNKNOWN_SPREAD**2 < ENOUGH
            return few and any(box.filters or box.texts for box in self.question.region.boxes)
        return not is_enough(self.narrowed, self.shape, self.calibration)

    @cached_property
    def most(self) -> float:
        """How many rows there can be at most, by filters on unique columns."""
        bound = self.question.region.most
        return float(self.hits.total if bound is None else min(bound, self.hits.total))

    @property
    def is_bound_reached(self) -> bool:
        """Whether the evidence rows hold all rows that there can be."""
        return self.hits.count >= self.most

    @property
    def prior_particles(self) -> int | None:
        """How many particles the model's walk takes; None if it chooses by itself."""
        return FEW_PARTICLES if self.hits.share >= LARGE_SAMPLE and not self._is_on_text else None

    @cached_property
    def _is_on_text(self) -> bool:
        """Whether the question asks about text."""
        return any(box.texts for box in self.question.region.boxes)

    def posterior(self, density: Density | None) -> Posterior:
        """How many rows there may be; ``density`` is the model's, if it was asked."""
        ordinary, dependency = self._ordinary(density), self.dependency
        if dependency is None:
            return ordinary
        total, part = float(self.hits.total), dependency.part
        if density is None:
            return dependency.posterior((part.count + 0.5) / (part.rows + 1.0), ordinary, 0.0, total)
        share = density.value * total / max(part.total, 1)
        return dependency.posterior(share, ordinary, *self._bounds(density))

    def _ordinary(self, density: Density | None) -> Posterior:
        """How many rows there may be, if no filter decides the others."""
        hits, total = self.narrowed, float(self.hits.total)
        if density is None:
            return posterior(hits, None, None, 0.0, float(hits.total))
        answer = density.value * total
        if self.estimated and self.narrowed is self.hits and hits.others.count < FEW_OTHERS:
            return self._by_the_others(density)
        errors = UNIQUE_ERRORS if self.unique else self.calibration.errors(answer, self._shape_of(density))
        if self.question.among is not None:
            _, most = self._bounds(density)
            if self._log_shares is None:
                (high,) = sorted_quantiles(np.sort(errors), (1.0 - self.calibration.tail,))
                return posterior(hits, None, None, 0.0, min(most, max(answer, 1.0) * math.exp(high)))
            return posterior(hits, answer, np.add.outer(errors, self._log_shares).ravel(), 0.0, most)
        least, most = self._bounds(density)
        low, high = sorted_quantiles(np.sort(errors), (self.calibration.tail, 1.0 - self.calibration.tail))
        if is_refuted(max(answer * density.excess, 1.0), (math.exp(low), math.exp(high)), least, most):
            return posterior(hits, None, None, least, most)
        return posterior(hits, answer, errors, least, most)

    def _bounds(self, density: Density) -> tuple[float, float]:
        """How many rows there are at least and at most, by exact counts."""
        total = float(self.hits.total)
        return (density.least * total, density.most * total) if self.question.certain else (0.0, total)

    def _shape_of(self, density: Density) -> Shape:
        """The shape, with the steps that it took to find the density."""
        return replace(self.shape, steps=density.steps) if density.steps else self.shape

    @cached_property
    def _log_shares(self) -> FloatArray | None:
        """Logarithms of how large a part of the model's rows may satisfy the filters that it does not know.

        Of the evidence rows that part is known. Of the model's rows its odds may be others, by a factor that nothing
        tells. None if no evidence row satisfies them: then nothing is known but that they are rare.
        """
        among = self.question.among
        if among is None or not among.any():
            return None
        share = (float(among.sum()) + 0.5) / (len(among) + 1.0)
        odds = math.log(share / (1.0 - share)) + UNKNOWN_ERRORS[:: len(UNKNOWN_ERRORS) // ODDS]
        log_shares: FloatArray = -np.logaddexp(0.0, -odds)
        return log_shares

    def _model_rows(self, density: Density) -> float | None:
        """How many rows the model expects, as far as it knows the filters."""
        rows = density.value * self.hits.total
        if self.question.among is None:
            return rows
        return None if self._log_shares is None else rows * float(np.exp(self._log_shares).mean())

    def _by_the_others(self, density: Density) -> Posterior:
        """How many rows there may be if most rows are asked for, as by NOT LIKE: the others tell it better."""
        hits, total = self.hits, float(self.hits.total)
        others = (1.0 - density.value) * total
        errors = self.calibration.errors(others, self._shape_of(density))
        least, most = self._bounds(density)
        return posterior(hits.others, others, errors, total - most, total - least).of_others(total)

    def _widened(self, density: Density | None, low: float, high: float) -> tuple[float, float]:
        """The ends of an error bar of text, up to bounds that are near: one pattern is often in another, or outside."""
        narrowed = self.narrowed
        if narrowed is not self.hits and narrowed.count == narrowed.rows > 0:  # all that was counted, perhaps
            high = float(narrowed.total)
        if density is None or not self.question.certain or not self._is_on_text:
            return low, high
        least, most = self._bounds(density)
        return least if low < NEAR * least else low, most if most < NEAR * high else high

    def estimate(self, density: Density | None, method: str, ms: float, table_rows: int | None) -> Estimate:
        """The answer, with its error bar; of a table that has ``table_rows`` by now, if it has grown."""
        hits, total = self.hits, self.hits.total
        if density is not None and self.counted and is_certain(self.question, density):
            return estimate_of(self.question, density, self.calibration, total, method, ms, table_rows, hits)
        now = total if table_rows is None else table_rows
        model = None if density is None else self._model_rows(density)
        is_exact = hits.are_all or self.is_bound_reached
        if is_exact:
            rows = low = high = float(hits.count)
        else:
            tail = self.calibration.tail
            rows, low, high = self.posterior(density).quantiles((0.5, tail, 1.0 - tail))
            low, high = self._widened(density, low / self.narrowed.slack, high * self.narrowed.slack)
            if hits.count in (0, hits.rows) and model is None:  # nothing tells of the rows that the sample missed
                rows = float(hits.count and total)
            elif hits.count == 0 and rows <= 1.0:
                rows = min(rows, model or 0.0)
            if rows < SMALL and self._is_on_text:
                rows = float(round(rows))  # the median of whole numbers
            # Counts are whole: the ends are the least and the greatest that round to what the posterior has.
            low = math.ceil(low - 0.5 - ROUNDING) if low > 1.0 else float(hits.count)
            rows = min(rows, self.most)
            low, high = min(float(low), rows), max(float(math.floor(high + 0.5 + ROUNDING)), rows)
            high = min(high, self.most)
        factor = now / total
        return Estimate(
            where=self.question.where,
            rows=factor * rows,
            selectivity=rows / total,
            low=factor * low,
            high=min(float(now), factor * high),
            level=self.calibration.level,
            method=method,
            exact=is_exact and now == total,
            ms=ms,
            forward_rows=0 if density is None else sum([answer.forward_rows for answer in density.answers]),
            sampled=not is_exact,
            hits=hits.count,
            evidence_rows=hits.rows,
            model_rows=model,
            calibrated=density is None or self.calibration.knows(self._shape_of(density)),
        )


def prior_densities(
    runtimes: Runtimes, fusions: Sequence[Fusion], particles: int | None, seed: int
) -> list[Density | None]:
    """What the model says of each question that asks it, by no more particles than a prior needs.

    Text columns choose their own number.
    """
    asking = [index for index, fusion in enumerate(fusions) if fusion.asks_model]
    priors: list[Density | None] = [None] * len(fusions)
    if not asking:
        return priors
    by_budget: dict[int | None, list[int]] = {}
    for index in asking:
        budget = fusions[index].prior_particles if particles is None else particles
        by_budget.setdefault(budget, []).append(index)
    for budget, indices in by_budget.items():
        regions = [fusions[index].question.region for index in indices]
        for index, density in zip(indices, densities(runtimes, regions, MODEL_METHOD, budget, seed), strict=True):
            priors[index] = density
    return priors
