"""How many combinations of values several columns have, by rows that a model draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache

from countless.estimator.estimator import Estimator

DRAWN = 5_000  # rows


def combinations_of(estimator: Estimator, seed: int) -> Callable[[tuple[str, ...]], int]:
    """A function that tells how many combinations some columns have, at most about."""
    drawn = estimator.sample(DRAWN, seed=seed)
    values = dict(zip(drawn.names, drawn.columns, strict=True))
    distinct = {column.name: column.distinct for column in estimator.schema.columns}

    @cache
    def combinations(columns: tuple[str, ...]) -> int:
        most = math.prod(distinct[name] for name in columns)
        seen = Counter(zip(*(values[name] for name in columns), strict=True))
        return min(most, estimator.rows, expected_kinds(seen))

    return combinations


def expected_kinds(seen: Counter[tuple[object, ...]]) -> int:
    """How many kinds there are, if so many were seen of each: by the share of things of a kind that was seen only once,
    the rest are of kinds that were never seen (Good and Turing).

    >>> expected_kinds(Counter("aabbcd")), expected_kinds(Counter("aabb"))
    (6, 2)
    """
    drawn = seen.total()
    once = sum(count == 1 for count in seen.values())
    return math.ceil(len(seen) * drawn / max(1, drawn - once))
