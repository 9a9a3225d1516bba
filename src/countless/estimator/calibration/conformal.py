"""Split-conformal prediction: error bars from queries with known true counts, by those most like the question.

The score of a query is ``log(truth / estimate)``, both at least one row: signed, since a model may err to one side. Of
a fresh question, the scores of the *nearest* queries tell how far off the estimate may be: those that are most alike in
their estimates, in how many columns they ask about, in which share of these for a single value, and in whether there
is an OR. What is left out is shared by both ends, and is a little less than the level allows, so that the bars hold
in small groups of questions too. Rare combinations get wide bars, and broad filters narrow ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.cached_property import cached_property
from countless.errors import ModelFileError
from countless.json_forms import CALIBRATION, check_section
from countless.record import record
from countless.region import FREE, Box, Region

LEVEL = 0.9
COLUMNS = ("where", "rows", "estimates", "filters", "single", "union", "vague", "steps", "hits")  # of the file
CAUTION = 0.8  # of what the level leaves out, this much is left out: small groups of questions vary
NEAREST = (74, 99)  # queries, at least and at most; between them one in
ONE_IN = 16  # of all
ROUNDING = 1e-9
LEAST_ESTIMATE = 0.01  # rows; below, estimates are alike
LEVELS_PER_E = 3  # estimates of a list that differ by less than a third of a factor e have the same factors
MOST_FILTERS = 12  # above, numbers of filters are alike
# How much likeness in these counts, beside that of the estimate's logarithm.
FILTER_WEIGHT, SINGLE_WEIGHT, UNION_WEIGHT, VAGUE_WEIGHT, STEP_WEIGHT = 0.3, 4.0, 2.0, 4.0, 3.0
MOST_STEPS = 3  # above, numbers of steps are alike
USUAL_SHARE = 0.68  # of errors that are within one standard deviation
LEAST_KNOWN = 30  # queries from which something is known of the errors of a model
ENOUGH_KNOWN = 150  # and from which the nearest of them are alike
LEAST_OF_KIND = 5  # queries of a kind: of fewer, an error bar would be that of other kinds
FURTHEST = 0.99  # of the queries' errors
UNKNOWN_SPREAD = 1.0  # of the errors of a model that was not calibrated, in logarithms
UNKNOWN_ERRORS = UNKNOWN_SPREAD * np.array([NormalDist().inv_cdf((place + 0.5) / 40) for place in range(40)])
TAIL = 0.04  # of a posterior, on either side of an error bar


@record(eq=True)
class Shape:
    """What a question looks like: how many columns it asks about, of how many of these for one value, and if by OR.

    It is ``vague`` if the model can judge it only roughly, as a function of a grid's values by its knots. If counts of
    substrings were chained to answer it, ``steps`` says how many.
    """

    filters: int = 0
    single: int = 0
    union: bool = False
    vague: bool = False
    steps: int = 0

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """What kind of question it is: errors of one kind say nothing about another."""
        return self.union, self.vague, self.steps > 0

    @classmethod
    def of(cls, region: Region, vague: bool = False) -> Shape:
        """The shape of the box that asks most. Of a code in digits, the leading one tells whether it is one value."""
        boxes = region.boxes
        if len(boxes) == 1:
            (box,) = boxes
        else:
            box = max(boxes, key=lambda box: len(box.filters) + len(box.texts), default=Box(()))
        asked = [item.constraint for item in box.filters if item.constraint.start != FREE]
        single = sum([item.single for item in asked]) + sum([item.language.pattern.is_finite for item in box.texts])
        return cls(len(asked) + len(box.texts), single, len(boxes) > 1, vague)


@record(eq=True)
class CalibrationQuery:
    """A question, the truth, what the model answered, the shape of the question, and its hits in the evidence rows."""

    where: str
    rows: int
    estimate: float
    shape: Shape = Shape()
    hits: int = 0


@dataclass(frozen=True)
class Calibration:
    """Queries with known truth, and the error bars that follow from them.

    An error bar of a model with evidence rows leaves out so much of the posterior on either side as ``tail`` says.
    """

    queries: tuple[CalibrationQuery, ...]
    level: float = LEVEL
    tail: float = TAIL

    def knows(self, shape: Shape) -> bool:
        """Whether enough questions of this kind were asked to know how far off an answer may be."""
        return self._kinds[shape.kind] >= LEAST_OF_KIND

    @cached_property
    def _kinds(self) -> Counter[tuple[bool, bool, bool]]:
        return Counter(query.shape.kind for query in self.queries)

    def factors(self, estimate: float, shape: Shape) -> tuple[float, float]:
        """What to multiply an estimate with to get the ends of its error bar: 0 and infinity if that is unknown."""
        if not self.knows(shape):
            return 0.0, math.inf
        return self._factors(self._distances(estimate, shape), len(self.queries))

    def level_factors(self, level: int, shape: Shape) -> tuple[float, float]:
        """The same for all estimates of one of the levels that :func:`bars` makes; they are kept."""
        if (level, shape) not in self._kept:
            self._kept[level, shape] = self.factors(math.exp(level / LEVELS_PER_E), shape)
        return self._kept[level, shape]

    @cached_property
    def _kept(self) -> dict[tuple[int, Shape], tuple[float, float]]:
        return {}

    def errors(self, estimate: float, shape: Shape, without: int | None = None) -> FloatArray:
        """Logarithms of truth to answer, of the queries that are most like a question, but for the one ``without``."""
        others = len(self.queries) - (without is not None)
        if others < LEAST_KNOWN:
            return UNKNOWN_ERRORS
        if not self.knows(shape):
            return self._widest_errors
        distances = self._distances(estimate, shape)
        if without is not None:
            distances[without] = math.inf
        if others >= ENOUGH_KNOWN:
            return self._nearest(distances, others)
        few = self._scores[np.argpartition(distances, others // 2)[: others // 2]]  # of so few, some are quite unlike
        return np.concatenate([few, UNKNOWN_ERRORS[:: max(1, 2 * len(UNKNOWN_ERRORS) // len(few))]])

    @cached_property
    def _widest_errors(self) -> FloatArray:
        """Errors of questions that are like no query: as large as those of the queries that were furthest off."""
        furthest = sorted_quantiles(np.sort(np.abs(self._scores)), (FURTHEST,))[0]
        errors: FloatArray = UNKNOWN_ERRORS * max(1.0, furthest / UNKNOWN_ERRORS[-1])
        return errors

    def spread(self, estimate: float, shape: Shape) -> float:
        """The standard deviation of the model's errors, in logarithms, at questions of this size and shape."""
        level = round(math.log(max(estimate, LEAST_ESTIMATE)) * LEVELS_PER_E)
        if (level, shape) not in self._spreads:
            errors = self.errors(math.exp(level / LEVELS_PER_E), shape)
            self._spreads[level, shape] = sorted_quantiles(np.sort(np.abs(errors)), (USUAL_SHARE,))[0]
        return self._spreads[level, shape]

    @cached_property
    def _spreads(self) -> dict[tuple[int, Shape], float]:
        return {}

    def left_out_bars(self, total: int) -> Iterator[tuple[float, float, float]]:
        """For each query, its estimate and the ends of the error bar that the other queries give it."""
        for index, query in enumerate(self.queries):
            distances = self._distances(query.estimate, query.shape)
            distances[index] = math.inf
            low, high = interval(query.estimate, total, self._factors(distances, len(self.queries) - 1))
            yield query.estimate, low, high

    def _factors(self, distances: FloatArray, others: int) -> tuple[float, float]:
        """The ends by the nearest of this many ``others``."""
        count = _count_nearest(others)
        tail = CAUTION * (1.0 - self.level) / 2.0
        low = math.floor((count + 1) * tail + ROUNDING)
        if low < 1:
            return 0.0, math.inf
        scores = np.sort(self._nearest(distances, others))
        return math.exp(scores[low - 1]), math.exp(scores[count - low])

    def _nearest(self, distances: FloatArray, others: int) -> FloatArray:
        """The scores of the nearest of this many ``others``."""
        count = _count_nearest(others)
        found: FloatArray = self._scores[np.argpartition(distances, count - 1)[:count]]
        return found

    def _distances(self, estimate: float, shape: Shape) -> FloatArray:
        """How unlike each query is to a question: the sum of its differences."""
        away = self._places - _place(estimate, shape)[:, None]
        distances: FloatArray = np.add.reduce(np.abs(away, out=away), axis=0)
        return distances

    @cached_property
    def _places(self) -> FloatArray:
        """Where every query lies among all questions, (6, queries)."""
        return np.array([_place(query.estimate, query.shape) for query in self.queries]).reshape(-1, 6).T.copy()

    @cached_property
    def _scores(self) -> FloatArray:
        return np.array([math.log(max(query.rows, 1.0) / max(query.estimate, 1.0)) for query in self.queries])

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file, by columns, which takes less room."""
        queries = [
            (query.where, query.rows, query.estimate, *map(int, astuple(query.shape)), query.hits)
            for query in self.queries
        ]
        columns = {name: [values[index] for values in queries] for index, name in enumerate(COLUMNS)}
        return {"level": self.level, **columns, "tail": self.tail}

    @classmethod
    def from_json(cls, data: Any) -> Calibration:
        """The calibration that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        check_section("calibration.json", CALIBRATION, data)
        columns = [data[name] for name in COLUMNS]
        if len(set(map(len, columns))) > 1:
            raise ModelFileError("the calibration is damaged: its lists have several lengths; fit the model again")
        queries = tuple(_query(*values) for values in zip(*columns, strict=True))
        return cls(queries, float(data["level"]), float(data["tail"]))


def sorted_quantiles(rising: FloatArray, shares: Sequence[float]) -> list[float]:
    """Quantiles of values that are sorted, as ``np.quantile`` has them, in a tenth of its time.

    >>> sorted_quantiles(np.array([1.0, 2.0, 4.0]), (0.25, 0.5, 1.0))
    [1.5, 2.0, 4.0]
    """
    found = []
    for share in shares:
        place = share * (len(rising) - 1)
        below = min(int(place), len(rising) - 1)
        above = min(below + 1, len(rising) - 1)
        found.append(float(rising[below] + (place - below) * (rising[above] - rising[below])))
    return found


def interval(rows: float, total: int, factors: tuple[float, float]) -> tuple[float, float]:
    """The error bar around ``rows`` of ``total``; it begins at zero if one row is within it, and holds the estimate.

    >>> interval(100.0, 1000, (0.5, 2.0)), interval(0.3, 1000, (0.5, 2.0)), interval(800.0, 1000, (0.5, 2.0))
    ((50.0, 200.0), (0.0, 2.0), (400.0, 1000.0))
    """
    at_least_one = max(rows, 1.0)
    low = at_least_one * factors[0]
    high = min(float(total), at_least_one * factors[1])
    return (min(low, rows) if low > 1.0 else 0.0), max(high, rows)


def is_refuted(rows: float, factors: tuple[float, float], least: float, most: float) -> bool:
    """Whether bounds leave nothing of the error bar around ``rows``: then the model errs as it never did before.

    >>> is_refuted(100.0, (0.5, 2.0), 0.0, 60.0), is_refuted(100.0, (0.5, 2.0), 0.0, 40.0)
    (False, True)
    """
    return rows * factors[0] > most or rows * factors[1] < least


def bars(calibration: Calibration, rows: FloatArray, total: int, shape: Shape) -> tuple[FloatArray, FloatArray]:
    """The ends of the error bars of many estimates of one shape; those that are nearly equal share their factors."""
    levels, which = np.unique(
        np.rint(np.log(np.maximum(rows, LEAST_ESTIMATE)) * LEVELS_PER_E).astype(np.int64), return_inverse=True
    )
    factors = [calibration.level_factors(level, shape) for level in levels.tolist()]
    ends = [interval(count, total, factors[place]) for count, place in zip(rows.tolist(), which.tolist(), strict=True)]
    found = np.array(ends).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def width(low: float, high: float) -> float:
    """The factor between the ends of an error bar, both at least one row.

    >>> width(50.0, 200.0), width(0.0, 3.0)
    (4.0, 3.0)
    """
    return max(high, 1.0) / max(low, 1.0)


def _query(
    where: str, rows: int, estimate: float, filters: int, single: int, union: int, vague: int, steps: int, hits: int
) -> CalibrationQuery:
    shape = Shape(filters, single, bool(union), bool(vague), steps)
    return CalibrationQuery(where, rows, float(estimate), shape, hits)


def _count_nearest(others: int) -> int:
    """How many of this many others to ask."""
    least, most = NEAREST
    return min(others, most, max(least, others // ONE_IN))


def _place(estimate: float, shape: Shape) -> FloatArray:
    """Where a question lies among all: distances are sums over these."""
    share = shape.single / shape.filters if shape.filters else 0.0
    return np.array(
        [
            math.log(max(estimate, LEAST_ESTIMATE)),
            FILTER_WEIGHT * min(shape.filters, MOST_FILTERS),
            SINGLE_WEIGHT * share,
            UNION_WEIGHT * shape.union,
            VAGUE_WEIGHT * shape.vague,
            STEP_WEIGHT * min(shape.steps, MOST_STEPS),
        ]
    )
