"""Functional dependencies: filters that the value of one column decides. None of its rows satisfy them, or all do.

A package has one section and one architecture. So either all rows with ``package = 'x'`` satisfy
``architecture <> 'all'``, or none does. A model that was trained on few rows of the package predicts a share between
0 and 1, which is certainly wrong. Evidence rows show such a dependency: two rows with the same value of the column
both satisfy the other filters, or neither does. How often they differ, compared with two random rows, is the share of
values that count as mixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.engine.runtimes import Runtimes
from countless.estimator.answers.evidence import Evidence
from countless.estimator.calibration.posterior import LEAST_COUNT, Posterior, SampleCount
from countless.query.question import Question
from countless.region import Box, Filter

MOST_MIXED = 0.05  # share of mixed values up to which a column counts as deciding the filters


@dataclass(frozen=True)
class Dependency:
    """The rows with one value of a column, if the other filters select all of them or none.

    ``part`` has the hits among the evidence rows with that value. The value is one of those whose rows differ with a
    probability of ``mixed``.
    """

    part: SampleCount
    mixed: float

    def posterior(self, share: float, ordinary: Posterior, least: float, most: float) -> Posterior:
        """How many rows there may be: none, all of the part, or as many as the ``ordinary`` posterior says.

        ``share`` is how much of the part satisfies the other filters, as the model says: the chance that all do.
        """
        part, rows = self.part, float(self.part.total)
        share = min(max(share, self.mixed), 1.0 - self.mixed)
        nothing = (1.0 - share) * (part.count == 0 and least <= 0)
        everything = share * (part.count == part.rows and most >= rows)
        mixed = self.mixed / (part.rows + 1)  # the likelihood of these hits if every share is equally likely
        total = nothing + everything + mixed
        nothing, mixed = nothing / total, mixed / total
        inside = np.clip(ordinary.counts, LEAST_COUNT, rows)
        counts = np.concatenate([[LEAST_COUNT] * 2, inside, [rows] * 2])
        below = np.concatenate([[0.0, nothing], nothing + mixed * ordinary.below, [nothing + mixed, 1.0]])
        return Posterior(counts, below)


def dependency(hits: SampleCount, evidence: Evidence, runtimes: Runtimes, question: Question) -> Dependency | None:
    """The filter on one value that decides the others of a question, if there is one."""
    boxes = question.region.boxes
    if hits.are_all or len(boxes) != 1 or question.among is not None or runtimes.counts is None:
        return None
    (box,) = boxes
    if len(box.filters) + len(box.texts) < 2:
        return None
    candidates = [(rows, item) for item in box.filters if (rows := _rows_of_value(item, runtimes)) is not None]
    if not candidates:
        return None
    rows, value = min(candidates, key=lambda candidate: candidate[0])
    of_value = evidence.count_box(Box((value,)))
    if hits.count not in (0, of_value) or of_value > rows:
        return None
    other_filters = Box(tuple([item for item in box.filters if item is not value]), box.texts)
    mixed = evidence.differences(value, other_filters)
    if mixed is None or mixed > MOST_MIXED:
        return None
    return Dependency(SampleCount(hits.count, of_value, rows), mixed)


def _rows_of_value(value: Filter, runtimes: Runtimes) -> int | None:
    """How many rows have the value that a filter asks for; None if it asks for several values."""
    assert runtimes.counts is not None
    if value.seen is not None:
        return None
    counts = runtimes.counts.filter_counts(value)
    return counts.rows if counts.values == 1 else None
