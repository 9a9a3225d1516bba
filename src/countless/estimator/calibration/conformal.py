"""Split-conformal prediction: error bars from queries with known true counts that are similar to the question.

The score of a query is ``log(truth / estimate)``, both at least one row. It has a sign, because a model may err more to
one side. The error bar of a new question follows from the scores of the *nearest* queries: those with the most similar
estimates, numbers of filtered columns, shares of columns with a single value, and use of OR. Each end leaves out half
of what the level allows, and a little less, so that the bars also hold in small groups of questions. Rare combinations
get wide bars, and broad filters narrow ones.
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
CAUTION = 0.8  # bars leave out this share of what the level allows, because small groups of questions vary
NEAREST = (74, 99)  # the least and the most nearest queries; between them one in ONE_IN of all
ONE_IN = 16
ROUNDING = 1e-9
LEAST_ESTIMATE = 0.01  # rows; smaller estimates count as equal
LEVELS_PER_E = 3  # factors are cached for this many estimates per factor of e
MOST_FILTERS = 12  # higher numbers of filters count as equal
# Weights of differences between questions; the difference of the estimates' logarithms has weight 1.
FILTER_WEIGHT, SINGLE_WEIGHT, UNION_WEIGHT, VAGUE_WEIGHT, STEP_WEIGHT = 0.3, 4.0, 2.0, 4.0, 3.0
MOST_STEPS = 3  # higher numbers of steps count as equal
ONE_SIGMA_SHARE = 0.68  # the share of errors within one standard deviation
LEAST_KNOWN = 30  # with fewer queries, nothing is known about the errors of a model
ENOUGH_KNOWN = 150  # with fewer queries, even the nearest ones are not similar
LEAST_OF_KIND = 5  # with fewer queries of its kind, a question would get the error bar of other kinds
WIDEST_SHARE = 0.99  # the quantile of the errors that is used for questions of an unknown kind
UNKNOWN_SPREAD = 1.0  # standard deviation of the errors of a model without calibration, in logarithms
UNKNOWN_ERRORS = UNKNOWN_SPREAD * np.array([NormalDist().inv_cdf((index + 0.5) / 40) for index in range(40)])
TAIL = 0.04  # the share of a posterior that is left out on either side of an error bar


@record(eq=True)
class Shape:
    """The features of a question that its error depends on.

    ``filters`` is the number of filtered columns, ``single`` how many of them have a filter on a single value, and
    ``union`` whether there is an OR. A question is ``vague`` if the model evaluates it approximately, such as a
    function of a grid's values by its knots. ``steps`` is the number of substring counts that were chained to answer
    it.
    """

    filters: int = 0
    single: int = 0
    union: bool = False
    vague: bool = False
    steps: int = 0

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """The kind of question. Errors of one kind tell nothing about another kind."""
        return self.union, self.vague, self.steps > 0

    @classmethod
    def of(cls, region: Region, vague: bool = False) -> Shape:
        """The shape of the box with the most filters. For a code in digits, ``single`` is about the leading digit."""
        boxes = region.boxes
        if len(boxes) == 1:
            (box,) = boxes
        else:
            box = max(boxes, key=lambda box: len(box.filters) + len(box.texts), default=Box(()))
        constraints = [item.constraint for item in box.filters if item.constraint.start != FREE]
        single = sum([constraint.single for constraint in constraints])
        single += sum([text_filter.language.pattern.is_finite for text_filter in box.texts])
        return cls(len(constraints) + len(box.texts), single, len(boxes) > 1, vague)


@record(eq=True)
class CalibrationQuery:
    """A question with its true count, the model's estimate, its shape, and its hits among the evidence rows."""

    where: str
    rows: int
    estimate: float
    shape: Shape = Shape()
    hits: int = 0


@dataclass(frozen=True)
class Calibration:
    """Queries with known counts, and the error bars that follow from them.

    ``tail`` is for models with evidence rows: the share of the posterior that an error bar leaves out on either side.
    """

    queries: tuple[CalibrationQuery, ...]
    level: float = LEVEL
    tail: float = TAIL

    def knows(self, shape: Shape) -> bool:
        """Whether there are enough queries of this kind to know the errors of estimates."""
        return self._kinds[shape.kind] >= LEAST_OF_KIND

    @cached_property
    def _kinds(self) -> Counter[tuple[bool, bool, bool]]:
        return Counter(query.shape.kind for query in self.queries)

    def factors(self, estimate: float, shape: Shape) -> tuple[float, float]:
        """The factors from an estimate to the ends of its error bar; 0 and infinity if they are unknown."""
        if not self.knows(shape):
            return 0.0, math.inf
        return self._factors(self._distances(estimate, shape), len(self.queries))

    def level_factors(self, level: int, shape: Shape) -> tuple[float, float]:
        """The factors for all estimates of one of the levels of :func:`bars`, cached."""
        if (level, shape) not in self._level_factors:
            self._level_factors[level, shape] = self.factors(math.exp(level / LEVELS_PER_E), shape)
        return self._level_factors[level, shape]

    @cached_property
    def _level_factors(self) -> dict[tuple[int, Shape], tuple[float, float]]:
        return {}

    def errors(self, estimate: float, shape: Shape, without: int | None = None) -> FloatArray:
        """The errors ``log(truth / estimate)`` of the queries most similar to a question; ``without`` skips a query."""
        count = len(self.queries) - (without is not None)
        if count < LEAST_KNOWN:
            return UNKNOWN_ERRORS
        if not self.knows(shape):
            return self._widest_errors
        distances = self._distances(estimate, shape)
        if without is not None:
            distances[without] = math.inf
        if count >= ENOUGH_KNOWN:
            return self._nearest(distances, count)
        # The nearest of so few queries are not all similar: mix their scores with those of an unknown model.
        scores = self._scores[np.argpartition(distances, count // 2)[: count // 2]]
        return np.concatenate([scores, UNKNOWN_ERRORS[:: max(1, 2 * len(UNKNOWN_ERRORS) // len(scores))]])

    @cached_property
    def _widest_errors(self) -> FloatArray:
        """The errors of a question of an unknown kind: as large as the largest errors of the queries."""
        largest = sorted_quantiles(np.sort(np.abs(self._scores)), (WIDEST_SHARE,))[0]
        errors: FloatArray = UNKNOWN_ERRORS * max(1.0, largest / UNKNOWN_ERRORS[-1])
        return errors

    def spread(self, estimate: float, shape: Shape) -> float:
        """The standard deviation of the model's errors, in logarithms, for questions of this size and shape."""
        level = round(math.log(max(estimate, LEAST_ESTIMATE)) * LEVELS_PER_E)
        if (level, shape) not in self._spreads:
            errors = self.errors(math.exp(level / LEVELS_PER_E), shape)
            self._spreads[level, shape] = sorted_quantiles(np.sort(np.abs(errors)), (ONE_SIGMA_SHARE,))[0]
        return self._spreads[level, shape]

    @cached_property
    def _spreads(self) -> dict[tuple[int, Shape], float]:
        return {}

    def left_out_bars(self, total: int) -> Iterator[tuple[float, float, float]]:
        """For each query, its estimate and the ends of the error bar that follows from the other queries."""
        for index, query in enumerate(self.queries):
            distances = self._distances(query.estimate, query.shape)
            distances[index] = math.inf
            low, high = interval(query.estimate, total, self._factors(distances, len(self.queries) - 1))
            yield query.estimate, low, high

    def _factors(self, distances: FloatArray, others: int) -> tuple[float, float]:
        """The factors of the ends, from the nearest of ``others`` queries."""
        count = _count_nearest(others)
        tail = CAUTION * (1.0 - self.level) / 2.0
        low = math.floor((count + 1) * tail + ROUNDING)
        if low < 1:
            return 0.0, math.inf
        scores = np.sort(self._nearest(distances, others))
        return math.exp(scores[low - 1]), math.exp(scores[count - low])

    def _nearest(self, distances: FloatArray, others: int) -> FloatArray:
        """The scores of the nearest of ``others`` queries."""
        count = _count_nearest(others)
        scores: FloatArray = self._scores[np.argpartition(distances, count - 1)[:count]]
        return scores

    def _distances(self, estimate: float, shape: Shape) -> FloatArray:
        """The distance of each query from a question: the sum of the differences of their features."""
        differences = self._features_of_queries - _features(estimate, shape)[:, None]
        distances: FloatArray = np.add.reduce(np.abs(differences, out=differences), axis=0)
        return distances

    @cached_property
    def _features_of_queries(self) -> FloatArray:
        """The features of all queries (6, queries)."""
        return np.array([_features(query.estimate, query.shape) for query in self.queries]).reshape(-1, 6).T.copy()

    @cached_property
    def _scores(self) -> FloatArray:
        return np.array([math.log(max(query.rows, 1.0) / max(query.estimate, 1.0)) for query in self.queries])

    def to_json(self) -> dict[str, Any]:
        """JSON data for the model file, with a list for each column, which is smaller."""
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


def sorted_quantiles(sorted_values: FloatArray, shares: Sequence[float]) -> list[float]:
    """Quantiles of values that are sorted, as ``np.quantile`` has them, in a tenth of its time.

    >>> sorted_quantiles(np.array([1.0, 2.0, 4.0]), (0.25, 0.5, 1.0))
    [1.5, 2.0, 4.0]
    """
    quantiles = []
    for share in shares:
        position = share * (len(sorted_values) - 1)
        below = min(int(position), len(sorted_values) - 1)
        above = min(below + 1, len(sorted_values) - 1)
        quantiles.append(
            float(sorted_values[below] + (position - below) * (sorted_values[above] - sorted_values[below]))
        )
    return quantiles


def interval(rows: float, total: int, factors: tuple[float, float]) -> tuple[float, float]:
    """The error bar around ``rows`` of ``total``. It includes the estimate, and starts at zero if it includes one row.

    >>> interval(100.0, 1000, (0.5, 2.0)), interval(0.3, 1000, (0.5, 2.0)), interval(800.0, 1000, (0.5, 2.0))
    ((50.0, 200.0), (0.0, 2.0), (400.0, 1000.0))
    """
    at_least_one = max(rows, 1.0)
    low = at_least_one * factors[0]
    high = min(float(total), at_least_one * factors[1])
    return (min(low, rows) if low > 1.0 else 0.0), max(high, rows)


def is_refuted(rows: float, factors: tuple[float, float], least: float, most: float) -> bool:
    """Whether the error bar around ``rows`` is outside exact bounds, so that the model's estimate is certainly wrong.

    >>> is_refuted(100.0, (0.5, 2.0), 0.0, 60.0), is_refuted(100.0, (0.5, 2.0), 0.0, 40.0)
    (False, True)
    """
    return rows * factors[0] > most or rows * factors[1] < least


def bars(calibration: Calibration, rows: FloatArray, total: int, shape: Shape) -> tuple[FloatArray, FloatArray]:
    """The ends of the error bars of estimates of one shape. Nearly equal estimates have the same factors."""
    levels, level_indexes = np.unique(
        np.rint(np.log(np.maximum(rows, LEAST_ESTIMATE)) * LEVELS_PER_E).astype(np.int64), return_inverse=True
    )
    factors = [calibration.level_factors(level, shape) for level in levels.tolist()]
    ends = [
        interval(count, total, factors[index])
        for count, index in zip(rows.tolist(), level_indexes.tolist(), strict=True)
    ]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


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
    """How many of ``others`` queries are the nearest ones."""
    least, most = NEAREST
    return min(others, most, max(least, others // ONE_IN))


def _features(estimate: float, shape: Shape) -> FloatArray:
    """The weighted features of a question, whose differences add up to a distance."""
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
