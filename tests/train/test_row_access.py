"""Rows of a file are the rows of the array, whichever are asked for, and few of them are held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from countless.data.columns.strings.text import Strings
from countless.spec import ModelSpec, SharedTextSpec
from countless.train.options import TrainOptions
from countless.train.row_access import Windows, stored
from countless.train.tasks.columns import ColumnsTask
from countless.train.tasks.task import Task, stream
from countless.train.tasks.text import TextTask

ROWS = 1_000


def mapped(array: NDArray[Any], path: Path) -> NDArray[Any]:
    array.tofile(path)
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)


@pytest.mark.parametrize("spread", [1, 60, 199, ROWS])
def test_any_rows(tmp_path: Path, spread: int) -> None:
    rng = np.random.default_rng(0)
    array = rng.integers(100, size=(ROWS, 3)).astype(np.int16)
    rows = Windows(mapped(array, tmp_path / "x"), 100, np.dtype(np.int64))
    for first in rng.integers(ROWS - spread + 1, size=20).tolist():
        chosen = torch.from_numpy(first + rng.integers(spread, size=30))
        places = torch.from_numpy(rng.integers(3, size=30))
        assert np.array_equal(rows[chosen].numpy(), array[chosen.numpy()])
        assert np.array_equal(rows[chosen, places].numpy(), array[chosen.numpy(), places.numpy()])
        assert np.array_equal(rows[chosen[:, None], places].numpy(), array[chosen.numpy()[:, None], places.numpy()])
        assert len(rows._cached) <= 300
    assert len(rows[torch.arange(0)]) == 0


def test_in_memory_they_are_a_tensor() -> None:
    array = np.arange(6, dtype=np.int32).reshape(3, 2)
    stored_rows = stored(array, None)
    assert isinstance(stored_rows, torch.Tensor)
    assert stored_rows.dtype == torch.int32


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
def test_a_table_in_memory_is_not_copied(kind: type[Any]) -> None:
    array = np.zeros((4, 3), dtype=kind)
    stored_rows = stored(array, None)
    array[1, 2] = 200
    assert stored_rows[torch.tensor([1]), torch.tensor([2])].tolist() == [200]


def tasks(tmp_path: Path, text: bool) -> tuple[Task, Task]:
    """The same task in memory, and from files in windows."""
    rng = np.random.default_rng(1)
    sizes = (4, 6)
    codes = np.stack([rng.integers(size, size=ROWS) for size in sizes], axis=1).astype(np.int8)
    options = TrainOptions(epochs=1, batch=50)
    if not text:
        spec = ModelSpec(sizes, hidden=16, blocks=1, embedding=8)
        return ColumnsTask(codes, spec, options), ColumnsTask(mapped(codes, tmp_path / "c"), spec, options, window=100)
    text_spec = SharedTextSpec.of([("abcde", 20)], width=16, blocks=1, heads=2, inner=16, buckets=64, context=sizes)
    lengths = rng.integers(1, 22, size=ROWS).astype(np.int32)
    symbols = np.full((ROWS, 21), text_spec.column(0).end, dtype=np.uint8)
    inside = np.arange(21) < lengths[:, None] - 1
    symbols[inside] = rng.integers(5, size=int(inside.sum()))
    there = Strings(mapped(symbols, tmp_path / "s"), mapped(lengths, tmp_path / "l"))
    return (
        TextTask([Strings(symbols, lengths)], text_spec, options, "spans", codes, (1, 1)),
        TextTask([there], text_spec, options, "spans", mapped(codes, tmp_path / "c"), (1, 1), window=100),
    )


@pytest.mark.parametrize("text", [False, True])
def test_tasks_learn_the_same_from_files(tmp_path: Path, text: bool) -> None:
    one, two = tasks(tmp_path, text)
    assert (one.window, two.window) == (None, 100)
    assert (one.rows, one.batch) == (two.rows, two.batch)
    for first in (0, 333, 950):
        rows = torch.arange(first, first + 50)
        assert one.learn(rows, stream(0, 1), 0.5, 1.0) == two.learn(rows, stream(0, 1), 0.5, 1.0)
    everything = torch.arange(ROWS)
    assert one.bits(everything, "masked", stream(0, 2)) == two.bits(everything, "masked", stream(0, 2))
