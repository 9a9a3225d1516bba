"""Convergence of the model's own answers: more and more particles, until the estimates stop changing.

A query that was answered exactly needs nothing. Any other is walked twice, with independent random numbers and several
times the particles. It has settled if the two answers agree, and if they have not moved far from the answer before:
two walks that have both missed the mass agree, too. Else it gets four times as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from countless.engine.methods import MODEL_METHOD
from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.estimator import Estimator
from countless.evaluation.diagnosis.answered import DiagnosedQuery, Settled, Tell

FIRST, STEP, MOST = 1_024, 4, 16_384  # particles: the first walks, the factor between walks, the last
AGREE = 1.02  # the factor between two walks that agree
NEAR = 1.1  # and between them and the answer before
SEEDS = (104_729, 1_299_709)  # of the two walks
CHUNK = 32  # queries that are asked together


@dataclass(frozen=True)
class ConvergenceLimits:
    """Most particles to use, to measure the model's own error."""

    most: int = MOST
    agree: float = AGREE
    near: float = NEAR

    def levels(self, particles: int | None = None) -> list[int]:
        """Numbers of particles to try in turn: all more than the answer under question had, if it had a fixed number.

        >>> limits = ConvergenceLimits()
        >>> limits.levels(), limits.levels(1_000), ConvergenceLimits(most=2_000).levels(), limits.levels(16_384)
        ([1024, 4096, 16384], [4000, 16000], [1024], [65536])
        """
        levels = [max(FIRST, STEP * (particles or 0))]
        while STEP * levels[-1] <= self.most:
            levels.append(STEP * levels[-1])
        return levels


def settle(
    estimator: Estimator,
    questions: Sequence[DiagnosedQuery],
    answers: Sequence[Estimate],
    effort: ConvergenceLimits,
    particles: int | None,
    tell: Tell,
) -> list[Settled]:
    """The model's own answer to each question.

    ``answers`` are the estimator's, with ``particles`` if that was fixed. A model of several orders shares a number of
    particles among them, so it gets this many for each.
    """
    orders = max(1, estimator.orders)
    found = [Settled(answer.rows, "exact") for answer in answers]
    open_ones = [index for index, answer in enumerate(answers) if answer.sampled]
    for level in effort.levels(None if particles is None else -(-particles // orders)):
        if not open_ones:
            break
        before, still = {index: found[index].rows for index in open_ones}, []
        for first in range(0, len(open_ones), CHUNK):
            tell(f"walking with {level:,} particles", first, len(open_ones))
            chunk = open_ones[first : first + CHUNK]
            clauses = [questions[index].where for index in chunk]
            walks = [
                estimator.estimate_many(clauses, method=MODEL_METHOD, particles=level * orders, seed=seed)
                for seed in SEEDS
            ]
            for index, one, other in zip(chunk, *walks, strict=True):
                found[index] = _settled(one, other, level, before[index], effort)
                if found[index].how == "moving":
                    still.append(index)
        tell(f"walking with {level:,} particles", len(open_ones), len(open_ones))
        open_ones = still
    return found


def _settled(one: Estimate, other: Estimate, particles: int, before: float, effort: ConvergenceLimits) -> Settled:
    """What two walks say, given the answer before."""
    if not one.sampled:
        return Settled(one.rows, "exact", particles)
    rows, apart = (one.rows + other.rows) / 2, q_error(one.rows, other.rows)
    steady = apart <= effort.agree and q_error(rows, before) <= effort.near
    return Settled(rows, "settled" if steady else "moving", particles, apart)
