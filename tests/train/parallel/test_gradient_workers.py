"""Processes that share out every batch learn the same, to the bit, however many of them run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from countless.errors import TrainingError
from countless.spec import ModelSpec
from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.parallel.gradient_workers import CAN_FORK, GradientWorkers, parts_of
from countless.train.tasks.columns import ColumnsTask
from countless.train.tasks.task import stream

SPEC = ModelSpec((4, 4, 3), hidden=16, blocks=1, embedding=8)
OPTIONS = TrainOptions(epochs=2, batch=256)
PARTS = 2

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="processes are forked on Linux only")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """PyTorch with as many threads as there are parts."""
    before = torch.get_num_threads()
    torch.set_num_threads(PARTS)
    yield
    assert torch.get_num_threads() == PARTS
    torch.set_num_threads(before)


def codes() -> NDArray[np.int8]:
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=3001)
    return np.stack([first, first, rng.integers(3, size=3001)], axis=1).astype(np.int8)


def new_task() -> ColumnsTask:
    return ColumnsTask(codes(), SPEC, OPTIONS)


def trained(**options: Any) -> Trained:
    return train(new_task(), OPTIONS, **options)


def same(one: Trained, other: Trained) -> bool:
    return all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)


def no_process() -> int:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_that_cannot_be_started_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    together = trained()
    monkeypatch.setattr(os, "fork", no_process)
    alone = trained()
    assert same(together, alone)
    assert together.report["history"] == alone.report["history"]


def test_parts_add_up_to_the_gradient_of_the_batch() -> None:
    """Without masks, of which every part draws its own."""
    task = ColumnsTask(codes(), SPEC, TrainOptions(batch=256, masking="none"))
    rows, gradients = torch.arange(255), []
    for parts in (1, 3):
        with GradientWorkers(task, 0, parts) as workers:
            workers.backward(rows, stream(0, 1), 0.0, 0, len(rows))
        gradients.append([parameter.grad for parameter in task.model.parameters()])
    for whole, summed in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, summed, atol=1e-5, rtol=1e-4)


def test_a_run_that_goes_on_ends_like_one_that_was_never_stopped(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.epoch == 1 and progress.fraction > 0.2:
            raise StopError

    with pytest.raises(StopError):
        trained(checkpoint=tmp_path / "run", on_progress=stop, save_every=0.0)
    assert same(trained(checkpoint=tmp_path / "run", resume=True), trained())


def test_a_process_that_dies_is_told_and_no_process_is_left() -> None:
    task, rows = new_task(), torch.arange(200)
    workers = GradientWorkers(task, 0, PARTS)
    cpus = os.sched_getaffinity(0)
    with workers:
        (process,) = workers._processes
        os.kill(process, signal.SIGINT)  # Ctrl-C goes to all processes of a terminal
        os.kill(process, signal.SIGTERM)  # and this to all of a service
        assert workers.backward(rows, stream(0, 1), 0.0, 0, len(rows)) > 0
        os.kill(process, signal.SIGKILL)
        with pytest.raises(TrainingError, match=r"ended unexpectedly.*OMP_NUM_THREADS=1"):
            workers.backward(rows, stream(0, 1), 0.0, 1, len(rows))
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert os.sched_getaffinity(0) == cpus


def test_small_batches_are_not_cut() -> None:
    task = new_task()
    assert parts_of(task) == PARTS
    task.batch = 100
    assert parts_of(task) == 1
