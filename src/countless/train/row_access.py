"""Row access for training: from memory, or window by window from a file."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countless.data.encoding.blocks import mapping_of, release_pages


class Stored(Protocol):
    """Something that is indexed as a tensor is: by rows, or by rows and places."""

    def __getitem__(self, index: Any) -> Tensor: ...


def stored(array: NDArray[Any], window: int | None) -> Stored:
    """The rows of ``array``, which are not copied; if there is a ``window``, they lie in a file.

    PyTorch cannot look up unsigned numbers of 16 bits, so these become signed ones: symbols are below 2**15.
    """
    kind = np.dtype(np.int16) if array.dtype == np.uint16 else array.dtype
    return torch.from_numpy(array.view(kind)) if window is None else Windows(array, window, kind)


class Windows:
    """An array in a file, of which the rows around those that were asked for last are in memory.

    Rows that are asked for together should lie within a window: then up to two windows are read, whole, and kept until
    others are asked for. If they lie further apart, only they are read.

    >>> rows = Windows(np.arange(20).reshape(10, 2), 3, np.dtype(np.int64))
    >>> rows[torch.tensor([4, 5])].tolist(), rows[torch.tensor([4, 3]), torch.tensor([1, 0])].tolist()
    ([[8, 9], [10, 11]], [9, 6])
    """

    def __init__(self, array: NDArray[Any], window: int, kind: np.dtype[Any]) -> None:
        self._array, self._window, self._kind = array, window, kind
        self._first, self._held = 0, torch.empty(0)

    def __getitem__(self, index: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        rows, *places = index if isinstance(index, tuple) else (index,)
        if not rows.numel():
            low, high = 0, 0
        else:
            low, high = int(rows.min()), int(rows.max())
        if high - low >= 2 * self._window:
            different, back = torch.unique(rows, return_inverse=True)
            return self._read(different.numpy())[(back, *places)]
        if low < self._first or high >= self._first + len(self._held):
            self._first = low // self._window * self._window
            self._held = self._read(slice(self._first, (high // self._window + 1) * self._window))
        return self._held[(rows - self._first, *places)]

    def _read(self, rows: slice | NDArray[Any]) -> Tensor:
        found = np.array(self._array[rows], dtype=self._kind)
        mapped = mapping_of(self._array)
        if mapped is not None:
            release_pages(mapped)
        return torch.from_numpy(found)
