"""Snap float noise to zero."""

from __future__ import annotations

import numpy as np

from countless.arrays import BoolArray, FloatArray

NOISE = 1e-9  # a smaller number is the noise of rounding


def snap_to_zero(number: float) -> float:
    """The number, or zero if it is smaller than the noise of rounding.

    >>> snap_to_zero(2.2e-16), snap_to_zero(-3e-12), snap_to_zero(0.01), snap_to_zero(12.0)
    (0.0, 0.0, 0.01, 12.0)
    """
    return number if abs(number) >= NOISE else 0.0


def is_more_than_noise(numbers: FloatArray) -> BoolArray:
    """Which numbers :func:`snap_to_zero` leaves as they are.

    >>> is_more_than_noise(np.array([2.2e-16, -0.01, 12.0])).tolist()
    [False, True, True]
    """
    above: BoolArray = np.abs(numbers) >= NOISE
    return above
