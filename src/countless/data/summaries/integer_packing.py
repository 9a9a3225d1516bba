"""Compact storage of integer arrays in the model file: one compressed plane per byte."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray

NUMBER = np.dtype("<i8")


def packed(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers as compressed bytes.

    >>> unpacked(packed(np.array([1, 300, -5])), 3).tolist()
    [1, 300, -5]
    """
    planes = np.ascontiguousarray(numbers.astype(NUMBER)).view(np.uint8).reshape(-1, NUMBER.itemsize).T
    return np.frombuffer(zlib.compress(planes.tobytes(), 9), dtype=np.uint8)


def unpacked(data: NDArray[Any], count: int) -> IntArray:
    """The ``count`` numbers that :func:`packed` wrote; a ValueError if the bytes are anything else."""
    size = count * NUMBER.itemsize
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(np.ascontiguousarray(data).tobytes(), size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(found) != size or not reader.eof or reader.unused_data:
        raise ValueError("not as many numbers as there should be")
    planes = np.frombuffer(found, dtype=np.uint8).reshape(NUMBER.itemsize, count)
    return np.ascontiguousarray(planes.T).view(NUMBER).reshape(count).astype(np.int64)
