"""Row access for training: from memory, or window by window from a file."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countless.data.encoding.blocks import mapping_of, release_pages


class Stored(Protocol):
    """An array that is indexed like a tensor: by rows, or by rows and columns."""

    def __getitem__(self, index: Any) -> Tensor: ...


def stored(array: NDArray[Any], window: int | None) -> Stored:
    """Access to the rows of ``array`` without a copy. If there is a ``window``, the array is in a file.

    PyTorch cannot index unsigned 16-bit numbers, so they are read as signed ones: symbols are below 2**15.
    """
    kind = np.dtype(np.int16) if array.dtype == np.uint16 else array.dtype
    return torch.from_numpy(array.view(kind)) if window is None else Windows(array, window, kind)


class Windows:
    """An array in a file. The windows around the rows that were read last are in memory.

    Rows that are read together should be within a window. Then up to two whole windows are read and cached until other
    rows are read. If the rows are further apart, only they are read.

    >>> rows = Windows(np.arange(20).reshape(10, 2), 3, np.dtype(np.int64))
    >>> rows[torch.tensor([4, 5])].tolist(), rows[torch.tensor([4, 3]), torch.tensor([1, 0])].tolist()
    ([[8, 9], [10, 11]], [9, 6])
    """

    def __init__(self, array: NDArray[Any], window: int, kind: np.dtype[Any]) -> None:
        self._array, self._window, self._kind = array, window, kind
        self._first, self._cached = 0, torch.empty(0)

    def __getitem__(self, index: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        rows, *columns = index if isinstance(index, tuple) else (index,)
        if not rows.numel():
            low, high = 0, 0
        else:
            low, high = int(rows.min()), int(rows.max())
        if high - low >= 2 * self._window:
            distinct, index_of = torch.unique(rows, return_inverse=True)
            return self._read(distinct.numpy())[(index_of, *columns)]
        if low < self._first or high >= self._first + len(self._cached):
            self._first = low // self._window * self._window
            self._cached = self._read(slice(self._first, (high // self._window + 1) * self._window))
        return self._cached[(rows - self._first, *columns)]

    def _read(self, rows: slice | NDArray[Any]) -> Tensor:
        values = np.array(self._array[rows], dtype=self._kind)
        mapped = mapping_of(self._array)
        if mapped is not None:
            release_pages(mapped)
        return torch.from_numpy(values)
