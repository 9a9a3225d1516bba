"""Iteration over arrays in blocks of rows, whether they are in memory or memory-mapped."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray

BLOCK_ROWS = 1 << 17  # at most
BLOCK_BYTES = 32 * 10**6  # of a block, about


def rows_of_block(array: NDArray[Any], most: int = BLOCK_ROWS) -> int:
    """How many rows of ``array`` a block should have: fewer if they are long.

    >>> rows_of_block(np.empty((0, 10), dtype=np.int8)), rows_of_block(np.empty((0, 1_000), dtype=np.int16))
    (131072, 16000)
    """
    return max(1, min(most, BLOCK_BYTES // max(1, array.itemsize * math.prod(array.shape[1:]))))


def blocks(array: NDArray[Any], rows: int | None = None) -> Iterator[NDArray[Any]]:
    """The rows of ``array``, some at a time. Those of a file are copies, and its pages are given back."""
    mapped = mapping_of(array)
    rows = rows_of_block(array) if rows is None else rows
    for first in range(0, len(array), rows):
        part = array[first : first + rows]
        if mapped is None:
            yield part
        else:
            copy = np.array(part)
            give_back(mapped)
            yield copy


def spaced(rows: int, block: int, most: int) -> list[int]:
    """The first rows of up to ``most`` blocks of this many rows, evenly spread over all; all blocks if they are fewer.

    >>> spaced(10, 3, 9), spaced(1_000, 10, 4)
    ([0, 3, 6, 9], [0, 250, 500, 750])
    """
    blocks_of_all = -(-rows // block)
    chosen = min(blocks_of_all, max(1, most))
    return [place * blocks_of_all // chosen * block for place in range(chosen)]


def counted(matrix: NDArray[Any], sizes: Sequence[int]) -> list[IntArray]:
    """How many rows have each symbol, of as many as there are at every position.

    >>> [counts.tolist() for counts in counted(np.array([[0, 2], [1, 2]]), (2, 3))]
    [[1, 1], [0, 0, 2]]
    """
    found = [np.zeros(size, dtype=np.int64) for size in sizes]
    for block in blocks(matrix):
        for position, counts in enumerate(found):
            counts += np.bincount(block[:, position], minlength=len(counts))
    return found


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The file that the array lies in, if it is one."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def give_back(mapped: mmap.mmap) -> None:
    """Release a file's pages, which count as memory of this process while they are held."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
