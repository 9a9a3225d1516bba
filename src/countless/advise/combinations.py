"""The number of distinct value combinations of several columns, estimated from rows that a model samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from countless.estimator.estimator import Estimator

DRAWN = 5_000  # rows


def combinations_of(
    estimator: Estimator, seed: int, distinct: Mapping[str, int], rows: int
) -> Callable[[tuple[str, ...]], int]:
    """A function that estimates how many combinations some columns have; rather too many than too few.

    PostgreSQL may know of more ``distinct`` values and ``rows`` than the model, if the table has grown.
    """
    drawn = estimator.sample(DRAWN, seed=seed)
    values: dict[str, Sequence[Any]] = dict(zip(drawn.names, drawn.columns, strict=True))
    most = {name.casefold(): count for name, count in distinct.items()}
    sizes = {
        column.name: max(column.distinct, most.get(column.name.casefold(), 0)) for column in estimator.schema.coded
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
    """How many combinations columns have, of which some rows were ``drawn``.

    A few rows tell too few where many combinations are rare. By how much, shuffled columns tell: they have nothing to
    do with each other, so that of them there are as many as the ``distinct`` values allow. The fewer combinations are
    rare, measured by the rows of these, the smaller this correction is.
    """
    most = min(math.prod(distinct), rows)
    shuffled = [[column[place] for place in rng.permutation(len(column))] for column in drawn]
    seen, alone = (Counter(zip(*columns, strict=True)) for columns in (drawn, shuffled))
    missed = math.pow(max(1.0, most / expected_kinds(alone)), min(1.0, _once(seen) / max(1, _once(alone))))
    return max(*distinct, min(most, math.ceil(expected_kinds(seen) * missed)))


def expected_kinds(seen: Counter[tuple[object, ...]]) -> int:
    """Estimate the number of kinds from how often each was seen (Good and Turing).

    The share of things whose kind was seen only once estimates the share of things whose kind was never seen.

    >>> expected_kinds(Counter("aabbcd")), expected_kinds(Counter("aabb"))
    (6, 2)
    """
    drawn = seen.total()
    return math.ceil(len(seen) * drawn / max(1, drawn - _once(seen)))


def _once(seen: Counter[tuple[object, ...]]) -> int:
    """How many kinds were seen only once."""
    return sum(count == 1 for count in seen.values())
