"""Error bars from queries whose true counts are known: split-conformal prediction, by those most like the question.

The score of a query is ``log(truth / estimate)``, both at least one row: signed, since a model may err to one side. Of
a fresh question, the scores of the *nearest* queries tell how far off the estimate may be: those that are most alike in
their estimates, in how many columns they ask about, and in how many of these ask for a single value. What the level
leaves out is shared by both ends. So rare combinations get wide bars, and broad filters narrow ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.errors import ModelFileError
from countless.estimator.estimate import q_error
from countless.region import FREE, Box, Region

LEVEL = 0.9
NEAREST = (60, 150)  # queries, at least and at most; between them one in
ONE_IN = 16  # of all
LEAST_ESTIMATE = 0.01  # rows; below, estimates are alike
MOST_FILTERS = 12  # above, numbers of filters are alike
FILTER_WEIGHT, SINGLE_WEIGHT = 0.15, 2.0  # how much likeness in these counts, beside that of the estimate's logarithm


@dataclass(frozen=True)
class Shape:
    """What a question looks like: how many columns it asks about, and which share of these for one value each."""

    filters: int = 0
    single: float = 0.0

    @classmethod
    def of(cls, region: Region) -> Shape:
        """The shape of the box that asks most. Of a code in digits, the leading one tells whether it is one value."""
        box = max(region.boxes, key=lambda box: len(box.filters) + len(box.texts), default=Box(()))
        asked = [item.constraint for item in box.filters if item.constraint.start != FREE]
        single = sum(np.count_nonzero(item.transitions[0].weights[item.start]) == 1 for item in asked)
        filters = len(asked) + len(box.texts)
        return cls(filters, single / filters if filters else 0.0)


@dataclass(frozen=True)
class CalibrationQuery:
    """A question, the truth, what the model answered, and the shape of the question."""

    where: str
    rows: int
    estimate: float
    shape: Shape = Shape()


@dataclass(frozen=True)
class Calibration:
    """Queries with known truth, and the error bars that follow from them."""

    queries: tuple[CalibrationQuery, ...]
    level: float = LEVEL

    @property
    def factor(self) -> float:
        """How far off any estimate may be at this level; infinite when there are too few queries to say."""
        errors = sorted(q_error(query.estimate, query.rows) for query in self.queries)
        place = math.ceil((len(errors) + 1) * self.level)
        return errors[place - 1] if 0 < place <= len(errors) else math.inf

    def factors(self, estimate: float, shape: Shape) -> tuple[float, float]:
        """What to multiply an estimate with to get the ends of its error bar: 0 and infinity if there is no telling."""
        least, most = NEAREST
        count = min(len(self.queries), most, max(least, len(self.queries) // ONE_IN))
        distances = np.abs(self._places - _place(estimate, shape)).sum(axis=1)
        nearest = np.argpartition(distances, count - 1)[:count] if count else np.zeros(0, dtype=np.int64)
        scores = np.sort(self._scores[nearest])
        tail = (1.0 - self.level) / 2.0
        low, high = math.floor((count + 1) * tail), math.ceil((count + 1) * (1.0 - tail))
        return (
            math.exp(scores[low - 1]) if low >= 1 else 0.0,
            math.exp(scores[high - 1]) if high <= count and count else math.inf,
        )

    @cached_property
    def _places(self) -> FloatArray:
        """Where every query lies among all questions, (queries, 3)."""
        return np.array([_place(query.estimate, query.shape) for query in self.queries]).reshape(-1, 3)

    @cached_property
    def _scores(self) -> FloatArray:
        return np.array([math.log(max(query.rows, 1.0) / max(query.estimate, 1.0)) for query in self.queries])

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        queries = [
            {
                "where": query.where,
                "rows": query.rows,
                "estimate": query.estimate,
                "filters": query.shape.filters,
                "single": query.shape.single,
            }
            for query in self.queries
        ]
        return {"level": self.level, "queries": queries}

    @classmethod
    def from_json(cls, data: Any) -> Calibration:
        """The calibration that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        try:
            level = float(data["level"])
            queries = tuple(
                CalibrationQuery(
                    str(q["where"]),
                    int(q["rows"]),
                    float(q["estimate"]),
                    Shape(int(q.get("filters", 0)), float(q.get("single", 0.0))),
                )
                for q in data["queries"]
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the calibration is damaged ({error!r}): fit the model again") from None
        numbers = [number for query in queries for number in (query.estimate, query.shape.single, query.shape.filters)]
        if not 0 < level < 1 or any(not 0 <= number < math.inf for number in numbers):
            raise ModelFileError("the calibration is damaged: fit the model again")
        return cls(queries, level)


def interval(rows: float, total: int, factors: tuple[float, float]) -> tuple[float, float]:
    """The error bar around ``rows`` of ``total``; it begins at zero if one row is within it, and holds the estimate.

    >>> interval(100.0, 1000, (0.5, 2.0)), interval(0.3, 1000, (0.5, 2.0)), interval(800.0, 1000, (0.5, 2.0))
    ((50.0, 200.0), (0.0, 2.0), (400.0, 1000.0))
    """
    at_least_one = max(rows, 1.0)
    low = at_least_one * factors[0]
    high = min(float(total), at_least_one * factors[1])
    return (min(low, rows) if low > 1.0 else 0.0), max(high, rows)


def _place(estimate: float, shape: Shape) -> FloatArray:
    """Where a question lies among all: distances are sums over these three."""
    return np.array(
        [
            math.log(max(estimate, LEAST_ESTIMATE)),
            FILTER_WEIGHT * min(shape.filters, MOST_FILTERS),
            SINGLE_WEIGHT * shape.single,
        ]
    )
