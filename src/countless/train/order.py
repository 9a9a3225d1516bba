"""The order in which training visits rows, and the held-out split."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from countless.train.tasks.task import stream


class RowOrder(Protocol):
    """The rows of a table: some are held out, the others are visited in batches, in another order each epoch."""

    held_out: Tensor
    rows: int  # number of training rows
    steps: int  # batches of an epoch

    def first(self, count: int) -> Tensor:
        """The first ``count`` training rows, always the same."""
        ...

    def start(self, generator: torch.Generator) -> None:
        """Start an epoch."""
        ...

    def batch(self, step: int) -> Tensor:
        """The rows of a step in this epoch."""
        ...


def row_order(rows: int, held_out: int, batch: int, window: int | None, generator: torch.Generator) -> RowOrder:
    """The order of rows in memory; or of rows in a file, which is read in windows of ``window`` rows."""
    if window is None:
        return Shuffled(rows, held_out, batch, generator)
    return Windowed(rows, held_out, batch, window)


class Shuffled:
    """Rows in memory, in a random order.

    >>> order = Shuffled(10, held_out=2, batch=3, generator=stream(0, 0))
    >>> order.start(stream(0, 1))
    >>> seen = torch.cat([order.held_out, *(order.batch(step) for step in range(order.steps))])
    >>> sorted(seen.tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, rows: int, held_out: int, batch: int, generator: torch.Generator) -> None:
        self._kind = torch.int32 if rows < 2**31 else torch.int64  # half the bytes of every row
        shuffled = torch.randperm(rows, generator=generator, dtype=self._kind)
        self.held_out, self._trained_on = shuffled[:held_out].long(), shuffled[held_out:]
        self.rows, self._batch = rows - held_out, batch
        self.steps = math.ceil(self.rows / batch)
        self._order = self._trained_on

    def first(self, count: int) -> Tensor:
        return self._trained_on[:count].long()

    def start(self, generator: torch.Generator) -> None:
        indices = torch.randperm(self.rows, generator=generator, dtype=self._kind)
        self._order = self._trained_on[indices]

    def batch(self, step: int) -> Tensor:
        return self._order[step * self._batch : (step + 1) * self._batch].long()


class Windowed:
    """Rows of a file, which were shuffled when they were written.

    An epoch visits the file's windows in a random order, and the rows of each window in a random order. So reads are
    local, and memory does not grow with the table. The last window, which may be smaller, comes last.

    >>> order = Windowed(11, held_out=2, batch=2, window=4)
    >>> order.start(stream(0, 1))
    >>> [sorted(order.batch(step).tolist()) for step in range(order.steps)][-1]
    [10]
    >>> sorted(torch.cat([order.batch(step) for step in range(order.steps)]).tolist())
    [2, 3, 4, 5, 6, 7, 8, 9, 10]
    """

    def __init__(self, rows: int, held_out: int, batch: int, window: int) -> None:
        self.held_out = torch.arange(held_out)
        self.rows, self._batch = rows - held_out, batch
        self._steps_of_window = max(1, window // batch)
        self._window = self._steps_of_window * batch
        self.steps = math.ceil(self.rows / batch)
        self._seed, self._windows = 0, torch.arange(0)
        self._current, self._order = -1, torch.arange(0)

    def first(self, count: int) -> Tensor:
        return torch.arange(len(self.held_out), len(self.held_out) + min(count, self.rows))

    def start(self, generator: torch.Generator) -> None:
        self._seed = int(torch.randint(2**31, (), generator=generator))
        whole_windows, rest = divmod(self.rows, self._window)
        last = [torch.tensor([whole_windows])] if rest else []
        self._windows = torch.cat([torch.randperm(whole_windows, generator=generator), *last])
        self._current = -1

    def batch(self, step: int) -> Tensor:
        window_index, batch_in_window = divmod(step, self._steps_of_window)
        window = int(self._windows[window_index])
        if window != self._current:
            first = window * self._window
            rows = torch.randperm(min(self._window, self.rows - first), generator=stream(self._seed, window))
            self._current, self._order = window, rows + first + len(self.held_out)
        return self._order[batch_in_window * self._batch : (batch_in_window + 1) * self._batch]
