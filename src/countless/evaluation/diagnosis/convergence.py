"""Convergence of the model's own answers: more and more particles, until the estimates stop changing.

A query with an exact answer is done. Any other is walked twice, with independent random numbers and several times the
particles. It has settled if the two answers agree, and are near the previous answer: two walks that both missed the
mass agree, too. Otherwise it gets four times as many particles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from countless.engine.methods import MODEL_METHOD
from countless.estimator.answers.estimate import Estimate, q_error
from countless.estimator.estimator import Estimator
from countless.evaluation.diagnosis.answered import DiagnosedQuery, Settled, Tell

FIRST, STEP, MOST = 1_024, 4, 16_384  # particles of the first walks, factor between walks, most particles
AGREE = 1.02  # largest ratio of two walks that agree
NEAR = 1.1  # largest ratio of their mean and the previous answer
SEEDS = (104_729, 1_299_709)  # of the two walks
CHUNK = 32  # queries that are estimated together


@dataclass(frozen=True)
class ConvergenceLimits:
    """When the model's own answer counts as found, and the most particles to use for it."""

    most: int = MOST
    agree: float = AGREE
    near: float = NEAR

    def levels(self, particles: int | None = None) -> list[int]:
        """The numbers of particles to try in turn, larger than ``particles``, the fixed number of the answer.

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

    ``answers`` are the estimator's, with a fixed number of ``particles`` if that is not None. The orders of a model
    share its particles, so a model of several orders gets this many for each.
    """
    orders = max(1, estimator.orders)
    settled = [Settled(answer.rows, "exact") for answer in answers]
    open_indices = [index for index, answer in enumerate(answers) if answer.sampled]
    for level in effort.levels(None if particles is None else -(-particles // orders)):
        if not open_indices:
            break
        previous, moving = {index: settled[index].rows for index in open_indices}, []
        for start in range(0, len(open_indices), CHUNK):
            tell(f"walking with {level:,} particles", start, len(open_indices))
            chunk = open_indices[start : start + CHUNK]
            clauses = [questions[index].where for index in chunk]
            walks = [
                estimator.estimate_many(clauses, method=MODEL_METHOD, particles=level * orders, seed=seed)
                for seed in SEEDS
            ]
            for index, first_walk, second_walk in zip(chunk, *walks, strict=True):
                settled[index] = _settled(first_walk, second_walk, level, previous[index], effort)
                if settled[index].how == "moving":
                    moving.append(index)
        tell(f"walking with {level:,} particles", len(open_indices), len(open_indices))
        open_indices = moving
    return settled


def _settled(
    first_walk: Estimate, second_walk: Estimate, particles: int, previous: float, effort: ConvergenceLimits
) -> Settled:
    """The model's own answer from two walks, given the previous answer."""
    if not first_walk.sampled:
        return Settled(first_walk.rows, "exact", particles)
    rows, ratio = (first_walk.rows + second_walk.rows) / 2, q_error(first_walk.rows, second_walk.rows)
    has_settled = ratio <= effort.agree and q_error(rows, previous) <= effort.near
    return Settled(rows, "settled" if has_settled else "moving", particles, ratio)
