"""Fast lookup of many numbers in a sorted array: a direct-address table, then binary search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray

BUCKETS = 20  # the table has at most two to the power of this many entries
SIGN = np.uint64(1 << 63)
MAGNITUDE = np.int64(2**63 - 1)


def ordered(values: NDArray[Any]) -> IntArray:
    """Numbers as 64-bit integers in the same order; -0 is 0, and NaN the greatest of all.

    >>> ordered(np.array([np.nan, np.inf, 0.5, -0.0, -0.5])).argsort().tolist()
    [4, 3, 2, 1, 0]
    >>> ordered(np.array([2**64 - 1, 0], dtype=np.uint64)).argsort().tolist()
    [1, 0]
    """
    if values.dtype.kind == "f":
        numbers = values.astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.int64)
        return bits ^ ((bits >> 63) & MAGNITUDE)
    if values.dtype == np.uint64:
        return (values ^ SIGN).view(np.int64)
    return values.astype(np.int64, copy=False)


class Lookup:
    """Finds the place of the last key that is no greater than a number. Keys ascend, and there is at least one.

    >>> lookup = Lookup(np.array([-5, 0, 7, 2**40]))
    >>> lookup.last(np.array([-5, -4, 6, 7, 2**50])).tolist()
    [0, 0, 1, 2, 3]
    >>> places, found = lookup.equal(np.array([7, -5, 8, -6]))
    >>> places[found].tolist(), found.tolist()
    ([2, 0], [True, True, False, False])
    """

    def __init__(self, keys: IntArray) -> None:
        self.keys = keys
        self._least = keys[:1].view(np.uint64)
        extent = int(keys[-1]) - int(keys[0])
        self._shift = np.uint64(max(0, extent.bit_length() - BUCKETS))
        count = (extent >> int(self._shift)) + 1
        begins = self._least + (np.arange(count, dtype=np.uint64) << self._shift)
        low = np.searchsorted(keys, begins.view(np.int64), "right") - 1
        self._high = np.append(low[1:], [len(keys) - 1, len(keys) - 1]).astype(np.int32)
        following = np.append(begins[1:], begins[-1:]).view(
            np.int64
        )  # a key that begins the next bucket is not in this
        exact = np.flatnonzero(keys[self._high[: count - 1]] == following[: count - 1])
        self._high[exact] -= 1
        self._low = np.append(low, len(keys) - 1).astype(np.int32)
        self._last = np.uint64(count)

    def last(self, numbers: IntArray) -> NDArray[np.int32]:
        """The place of the last key up to each number; of a number below them all it is 0."""
        buckets = self._buckets(numbers)
        places = self._low.take(buckets)
        open_ = np.flatnonzero(places != self._high.take(buckets))
        if len(open_):
            places[open_] = np.maximum(np.searchsorted(self.keys, numbers[open_], "right") - 1, 0)
        return places

    def equal(self, numbers: IntArray) -> tuple[NDArray[np.int32], BoolArray]:
        """The place of each number among the keys, and whether it is there."""
        places = self._high.take(self._buckets(numbers))
        found: BoolArray = self.keys.take(places) == numbers
        open_ = np.flatnonzero(~found)
        if len(open_):
            places[open_] = np.maximum(np.searchsorted(self.keys, numbers[open_], "right") - 1, 0)
            found[open_] = self.keys.take(places[open_]) == numbers[open_]
        return places, found

    def _buckets(self, numbers: IntArray) -> IntArray:
        """Where each number is in the table; whatever lies outside of the keys comes last."""
        buckets: NDArray[np.uint64] = np.ascontiguousarray(numbers).view(np.uint64) - self._least
        buckets >>= self._shift
        np.minimum(buckets, self._last, out=buckets)
        return buckets.view(np.int64)
