"""Likely values of a grid's column between its knots: multiples of the step that the table's values have."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.types import FLOATS, TEXT
from countless.query.grids.ranges import Cut
from countless.query.grids.scale import Key, scale_of


def nearest_value(kind: str, granularity: Granularity | None, key: Key, low: Cut, high: Cut) -> Key | None:
    """The value of type ``kind`` nearest to ``key`` that lies between two cuts, if there is one.

    It is a multiple of the column's ``granularity``, unless there is none between the cuts. For a string it is the key
    itself, or None.

    >>> nearest_value("INTEGER", None, 2.6, (0, 0), (9, 0)), nearest_value("INTEGER", None, 2.6, (2, 1), (3, 0))
    (3, None)
    >>> tens = Granularity(Fraction(10))
    >>> nearest_value("INTEGER", tens, 26, (0, 0), (99, 0)), nearest_value("INTEGER", tens, 26, (22, 0), (29, 0))
    (30, 26)
    >>> nearest_value("DOUBLE", Granularity(Fraction(1, 100)), 0.1234, (0.1, 0), (0.5, 0))
    0.12
    """
    if kind == TEXT:
        return key if low <= (key, 0) < high else None
    if kind not in FLOATS:
        for steps in (granularity, _steps_of(kind)):
            nearest = None if steps is None else steps.nearest(key, low, high)
            if nearest is not None:
                return nearest.numerator if nearest.denominator == 1 else nearest
        return None
    if granularity is not None:
        ends = [
            (Fraction(_printed(kind, cut[0])), cut[1]) for cut in (low, high)
        ]  # 0.1 itself, not the double nearest to it
        nearest = granularity.nearest(key, *ends)
        if nearest is not None:
            return _float(kind, float(nearest))
    number = min(max(_float(kind, key), _float(kind, low[0])), _float(kind, high[0]))
    if (number, 0) < low:
        number = _next(kind, number, math.inf)
    elif (number, 0) >= high:
        number = _next(kind, number, -math.inf)
    return number if low <= (number, 0) < high else None


def _steps_of(kind: str) -> Granularity:
    """The finest step that the values of a type can have."""
    step = scale_of(kind).step
    if step is None:
        step = 1 if kind == "TIMESTAMP_NS" else 1000
    return Granularity(Fraction(step))


def _float(kind: str, key: Any) -> float:
    return float(key) if kind == "DOUBLE" else float(np.float32(key))


def _next(kind: str, number: float, towards: float) -> float:
    """The next float of the type in a direction."""
    if kind == "DOUBLE":
        return math.nextafter(number, towards)
    return float(np.nextafter(np.float32(number), np.float32(towards)))


def _printed(kind: str, key: Any) -> str:
    return repr(float(key)) if kind == "DOUBLE" else str(np.float32(key))
