"""Large codes split into digits, so that no position of the model has more than about two thousand symbols.

The split is lossless: the digits, leading digit first, determine the code and keep its order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray

DIGITS_FROM = 2_000  # a column with more codes than this is written in digits (docs/accuracy.md)
GRID_DIGITS_FROM = 64  # the same for cells of a grid: most filters on them are ranges, which skip digits
WIDEST_DIGIT = 500  # most symbols of a digit: it sets the number of digits


def radices_of(size: int, digits_from: int | None = None) -> tuple[int, ...]:
    """Symbols per digit for ``size`` codes: one digit for a small column, else two or more of about equal width.

    >>> radices_of(74), radices_of(11_060), radices_of(1_000_000)
    ((74,), (105, 106), (100, 100, 100))
    """
    if size <= (DIGITS_FROM if digits_from is None else digits_from):
        return (size,)
    count = next(count for count in itertools.count(2) if size <= WIDEST_DIGIT**count)
    base = math.ceil(round(size ** (1 / count), 9))
    return (math.ceil(size / base ** (count - 1)), *(base,) * (count - 1))


def code_type(sizes: Iterable[int]) -> np.dtype[Any]:
    """The smallest signed type that holds a symbol of each position, and that training can index with."""
    widest = max(sizes, default=1)
    return np.dtype("<i1" if widest < 2**7 else "<i2" if widest < 2**15 else "<i4")


def to_digits(codes: NDArray[Any], radices: tuple[int, ...]) -> tuple[NDArray[Any], ...]:
    """The digits of every code, each in the smallest unsigned type.

    >>> [digit.tolist() for digit in to_digits(np.array([0, 106, 11_059]), (105, 106))]
    [[0, 1, 104], [0, 0, 35]]
    """
    digits = []
    quotient: NDArray[Any] = codes
    for radix in reversed(radices[1:]):
        quotient, digit = np.divmod(quotient, radix)
        digits.append(digit)
    return tuple(
        digit.astype(np.min_scalar_type(radix - 1))
        for digit, radix in zip([quotient, *reversed(digits)], radices, strict=True)
    )


def from_digits(digits: tuple[NDArray[Any], ...], radices: tuple[int, ...]) -> IntArray:
    """The codes with these digits: the inverse of :func:`to_digits`."""
    codes = digits[0].astype(np.int64)
    for digit, radix in zip(digits[1:], radices[1:], strict=True):
        codes = codes * radix + digit
    return codes
