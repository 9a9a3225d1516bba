"""Filters that one column's value decides: then none of its rows satisfy them, or all do.

A package is of one section and one architecture. So of the rows with ``package = 'x'`` either all satisfy
``architecture <> 'all'``, or none. A model that has seen few rows of the package gives a share between, which no table
has. Evidence rows show whether it is so: of two rows with the same value of the column, both or neither satisfy the
other filters. How often they differ, compared with any two rows, is the share of values that count as mixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless.engine.runtimes import Runtimes
from countless.estimator.answers.evidence import Evidence
from countless.estimator.calibration.posterior import LEAST_COUNT, Posterior, SampleCount
from countless.query.question import Question
from countless.region import Box, Filter

MOST_MIXED = 0.05  # of the values: with more, nothing is decided


@dataclass(frozen=True)
class Dependency:
    """What the rows with one value of a column have in common: they satisfy the other filters together, or not.

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
        none = (1.0 - share) * (part.count == 0 and least <= 0)
        every = share * (part.count == part.rows and most >= rows)
        some = self.mixed / (part.rows + 1)  # how likely these hits are if every share is
        total = none + every + some
        none, some = none / total, some / total
        inside = np.clip(ordinary.counts, LEAST_COUNT, rows)
        counts = np.concatenate([[LEAST_COUNT] * 2, inside, [rows] * 2])
        below = np.concatenate([[0.0, none], none + some * ordinary.below, [none + some, 1.0]])
        return Posterior(counts, below)


def dependency(hits: SampleCount, evidence: Evidence, runtimes: Runtimes, question: Question) -> Dependency | None:
    """The filter on one value that decides the others of a question, if there is one."""
    boxes = question.region.boxes
    if hits.are_all or len(boxes) != 1 or question.among is not None or runtimes.counts is None:
        return None
    (box,) = boxes
    if len(box.filters) + len(box.texts) < 2:
        return None
    values = [(rows, one) for one in box.filters if (rows := _rows_of_value(one, runtimes)) is not None]
    if not values:
        return None
    rows, value = min(values, key=lambda each: each[0])
    of_value = evidence.count_box(Box((value,)))
    if hits.count not in (0, of_value) or of_value > rows:
        return None
    others = Box(tuple([one for one in box.filters if one is not value]), box.texts)
    mixed = evidence.differences(value, others)
    if mixed is None or mixed > MOST_MIXED:
        return None
    return Dependency(SampleCount(hits.count, of_value, rows), mixed)


def _rows_of_value(item: Filter, runtimes: Runtimes) -> int | None:
    """How many rows have the one value that a filter asks for; None if it asks for others too."""
    assert runtimes.counts is not None
    if item.seen is not None:
        return None
    found = runtimes.counts.filter_counts(item)
    return found.rows if found.values == 1 else None
