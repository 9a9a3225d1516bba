"""Compact storage of integer arrays in the model file: one compressed plane per byte."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray

TYPES = tuple(np.dtype(name) for name in ("<i1", "<i2", "<i4", "<i8"))


def packed(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers as compressed bytes, in the smallest type that holds them all.

    >>> unpacked(packed(np.array([1, 300, -5])), 3).tolist()
    [1, 300, -5]
    """
    low, high = numbers.min(initial=0), numbers.max(initial=0)
    kind = next(kind for kind in TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    planes = np.ascontiguousarray(numbers.astype(kind)).view(np.uint8).reshape(-1, kind.itemsize).T
    return np.frombuffer(zlib.compress(planes.tobytes(), 9), dtype=np.uint8)


def unpacked(data: NDArray[Any], count: int) -> IntArray:
    """The ``count`` numbers that :func:`packed` wrote; a ValueError if the bytes are anything else."""
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(np.ascontiguousarray(data).tobytes(), count * TYPES[-1].itemsize + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    kind = next((kind for kind in TYPES if count * kind.itemsize == len(plain)), None)
    if kind is None or not decompressor.eof or decompressor.unused_data:
        raise ValueError("a wrong number of values")
    *planes, sign = np.frombuffer(plain, dtype=np.uint8).reshape(kind.itemsize, count)
    numbers: IntArray = sign.view(np.int8).astype(np.int64)
    for plane in reversed(planes):  # a plane at a time takes a quarter of the time of a transposed copy
        numbers <<= 8
        numbers |= plane
    return numbers


def unpacked_parts(data: NDArray[Any], sizes: Sequence[int]) -> list[IntArray]:
    """The numbers that :func:`packed` wrote, split into arrays of these ``sizes``."""
    numbers = unpacked(data, sum(sizes))
    return np.split(numbers, np.cumsum(sizes)[:-1]) if sizes else []


def require(holds: bool | np.bool_) -> None:
    """Raise a ValueError unless a condition on unpacked numbers ``holds``."""
    if not holds:
        raise ValueError
