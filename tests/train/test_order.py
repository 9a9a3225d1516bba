"""Every row is trained on once an epoch, in memory and in windows of a file."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from countless.train.order import RowOrder, row_order
from countless.train.tasks.task import stream


def epoch(order: RowOrder, number: int) -> list[list[int]]:
    order.start(stream(7, number))
    return [order.batch(step).tolist() for step in range(order.steps)]


@given(
    rows=st.integers(1, 60),
    held_out=st.integers(0, 10),
    batch=st.integers(1, 20),
    window=st.one_of(st.none(), st.integers(1, 70)),
)
def test_an_epoch_has_every_row_once_but_those_held_out(
    rows: int, held_out: int, batch: int, window: int | None
) -> None:
    held_out = min(held_out, rows - 1)
    order = row_order(rows, held_out, batch, window, stream(7, 0))
    batches = epoch(order, 1)
    trained_on = list(chain(*batches))
    assert sorted(trained_on + order.held_out.tolist()) == list(range(rows))
    assert all(len(each) == batch for each in batches[:-1])
    assert order.rows == rows - held_out
    assert set(order.first(5).tolist()) <= set(trained_on)
    assert epoch(order, 1) == batches  # it can be entered again


@pytest.mark.parametrize("window", [None, 100])
def test_epochs_differ(window: int | None) -> None:
    order = row_order(1000, 10, 10, window, stream(7, 0))
    assert epoch(order, 1) != epoch(order, 2)


def test_a_window_is_left_only_when_it_is_used_up() -> None:
    order = row_order(1000, 100, 10, 95, stream(7, 0))  # nine batches a window
    windows = [{(row - 100) // 90 for row in batch} for batch in epoch(order, 1)]
    assert all(len(window) == 1 for window in windows)
    visited = torch.unique_consecutive(torch.tensor([window.pop() for window in windows])).tolist()
    assert sorted(visited) == list(range(10))
    assert visited != list(range(10))
