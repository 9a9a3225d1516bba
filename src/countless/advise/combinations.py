"""The number of distinct value combinations of several columns, estimated from rows that a model samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from countless.estimator.estimator import Estimator

DRAWN_ROWS = 5_000


def combinations_of(
    estimator: Estimator, seed: int, distinct: Mapping[str, int], rows: int
) -> Callable[[tuple[str, ...]], int]:
    """A function that estimates the number of value combinations of some columns; rather too many than too few.

    If the table has grown, PostgreSQL may have more ``distinct`` values and ``rows`` than the model.
    """
    drawn = estimator.sample(DRAWN_ROWS, seed=seed)
    values: dict[str, Sequence[Any]] = dict(zip(drawn.names, drawn.columns, strict=True))
    planner_distinct = {name.casefold(): count for name, count in distinct.items()}
    sizes = {
        column.name: max(column.distinct, planner_distinct.get(column.name.casefold(), 0))
        for column in estimator.schema.coded
    }
    rng = np.random.default_rng(seed)

    @cache
    def combinations(columns: tuple[str, ...]) -> int:
        return expected_combinations(
            [values[name] for name in columns], [sizes[name] for name in columns], max(rows, estimator.rows), rng
        )

    return combinations


def expected_combinations(
    drawn: Sequence[Sequence[Any]], distinct: Sequence[int], rows: int, rng: np.random.Generator
) -> int:
    """Estimate the number of value combinations of columns from the rows that were ``drawn``.

    An estimate from few rows is too small if many combinations are rare. The correction comes from shuffled columns,
    which are independent, so that they have as many combinations as the ``distinct`` values allow. The fewer
    combinations are rare, compared with those of the shuffled columns, the smaller the correction is.
    """
    most = min(math.prod(distinct), rows)
    shuffled = [[column[row] for row in rng.permutation(len(column))] for column in drawn]
    observed, independent = (Counter(zip(*columns, strict=True)) for columns in (drawn, shuffled))
    correction = math.pow(
        max(1.0, most / expected_kinds(independent)),
        min(1.0, _observed_once(observed) / max(1, _observed_once(independent))),
    )
    return max(*distinct, min(most, math.ceil(expected_kinds(observed) * correction)))


def expected_kinds(counts: Counter[tuple[object, ...]]) -> int:
    """Estimate the number of kinds from the count of each observed kind (Good and Turing).

    The share of items whose kind was observed once estimates the share of items whose kind was not observed.

    >>> expected_kinds(Counter("aabbcd")), expected_kinds(Counter("aabb"))
    (6, 2)
    """
    total = counts.total()
    return math.ceil(len(counts) * total / max(1, total - _observed_once(counts)))


def _observed_once(counts: Counter[tuple[object, ...]]) -> int:
    """The number of kinds that were observed once."""
    return sum(count == 1 for count in counts.values())
