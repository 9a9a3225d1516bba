"""Fast lookup of many numbers in a sorted array: a direct-address table, then binary search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray

BUCKET_BITS = 20  # the table has at most two to the power of this many buckets
SIGN = np.uint64(1 << 63)
MAGNITUDE = np.int64(2**63 - 1)


def ordered(values: NDArray[Any]) -> IntArray:
    """Numbers as 64-bit integers in the same order; -0.0 equals 0.0, and NaN is the greatest.

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
    """Finds the index of the last key that is not greater than a number. Keys ascend, and there is at least one.

    >>> lookup = Lookup(np.array([-5, 0, 7, 2**40]))
    >>> lookup.last(np.array([-5, -4, 6, 7, 2**50])).tolist()
    [0, 0, 1, 2, 3]
    >>> indexes, is_key = lookup.equal(np.array([7, -5, 8, -6]))
    >>> indexes[is_key].tolist(), is_key.tolist()
    ([2, 0], [True, True, False, False])
    """

    def __init__(self, keys: IntArray) -> None:
        self.keys = keys
        self._least = keys[:1].view(np.uint64)
        extent = int(keys[-1]) - int(keys[0])
        self._shift = np.uint64(max(0, extent.bit_length() - BUCKET_BITS))
        count = (extent >> int(self._shift)) + 1
        starts = self._least + (np.arange(count, dtype=np.uint64) << self._shift)
        low = np.searchsorted(keys, starts.view(np.int64), "right") - 1
        self._high = np.append(low[1:], [len(keys) - 1, len(keys) - 1]).astype(np.int32)
        ends = np.append(starts[1:], starts[-1:]).view(np.int64)
        at_end = np.flatnonzero(keys[self._high[: count - 1]] == ends[: count - 1])
        self._high[at_end] -= 1  # a key at the start of the next bucket is not in this one
        self._low = np.append(low, len(keys) - 1).astype(np.int32)
        self._last = np.uint64(count)

    def last(self, numbers: IntArray) -> NDArray[np.int32]:
        """The index of the last key up to each number; 0 if the number is below all keys."""
        buckets = self._buckets(numbers)
        indexes = self._low.take(buckets)
        undecided = np.flatnonzero(indexes != self._high.take(buckets))
        if len(undecided):
            indexes[undecided] = np.maximum(np.searchsorted(self.keys, numbers[undecided], "right") - 1, 0)
        return indexes

    def equal(self, numbers: IntArray) -> tuple[NDArray[np.int32], BoolArray]:
        """The index of each number among the keys, and whether it is a key."""
        indexes = self._high.take(self._buckets(numbers))
        is_key: BoolArray = self.keys.take(indexes) == numbers
        undecided = np.flatnonzero(~is_key)
        if len(undecided):
            indexes[undecided] = np.maximum(np.searchsorted(self.keys, numbers[undecided], "right") - 1, 0)
            is_key[undecided] = self.keys.take(indexes[undecided]) == numbers[undecided]
        return indexes, is_key

    def _buckets(self, numbers: IntArray) -> IntArray:
        """The bucket of each number; numbers outside the range of the keys are in the last one."""
        buckets: NDArray[np.uint64] = np.ascontiguousarray(numbers).view(np.uint64) - self._least
        buckets >>= self._shift
        np.minimum(buckets, self._last, out=buckets)
        return buckets.view(np.int64)
