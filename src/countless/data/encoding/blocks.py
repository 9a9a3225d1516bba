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
    """Number of rows per block of ``array``: fewer if its rows are long.

    >>> rows_of_block(np.empty((0, 10), dtype=np.int8)), rows_of_block(np.empty((0, 1_000), dtype=np.int16))
    (131072, 16000)
    """
    return max(1, min(most, BLOCK_BYTES // max(1, array.itemsize * math.prod(array.shape[1:]))))


def blocks(array: NDArray[Any], rows: int | None = None) -> Iterator[NDArray[Any]]:
    """The rows of ``array`` in blocks. Blocks of a memory-mapped file are copies, and its pages are released."""
    mapped = mapping_of(array)
    rows = rows_of_block(array) if rows is None else rows
    for first in range(0, len(array), rows):
        block = array[first : first + rows]
        if mapped is None:
            yield block
        else:
            copy = np.array(block)
            release_pages(mapped)
            yield copy


def spaced(rows: int, block: int, most: int) -> list[int]:
    """The first rows of up to ``most`` blocks of ``block`` rows each, evenly spaced over all ``rows``.

    >>> spaced(10, 3, 9), spaced(1_000, 10, 4)
    ([0, 3, 6, 9], [0, 250, 500, 750])
    """
    total = -(-rows // block)
    count = min(total, max(1, most))
    return [index * total // count * block for index in range(count)]


def counted(matrix: NDArray[Any], sizes: Sequence[int]) -> list[IntArray]:
    """Number of rows with each symbol of each position; ``sizes`` has the number of symbols.

    >>> [counts.tolist() for counts in counted(np.array([[0, 2], [1, 2]]), (2, 3))]
    [[1, 1], [0, 0, 2]]
    """
    symbol_counts = [np.zeros(size, dtype=np.int64) for size in sizes]
    for block in blocks(matrix):
        for position, counts in enumerate(symbol_counts):
            counts += np.bincount(block[:, position], minlength=len(counts))
    return symbol_counts


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The file that the array is mapped from; None if it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def release_pages(mapped: mmap.mmap) -> None:
    """Release the pages of a mapped file, which otherwise count as memory of this process."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
