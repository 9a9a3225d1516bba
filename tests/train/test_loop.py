"""Training learns, stops when told, and goes on as if it had not stopped."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from countless.errors import TrainingError
from countless.spec import ModelSpec
from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.tasks.columns import ColumnsTask
from countless.train.tasks.masking import WORKLOAD_FROM
from countless.train.tasks.task import Inputs, stream

SIZES = (4, 4, 3)
SPEC = ModelSpec(SIZES, hidden=16, blocks=1, embedding=8)


def codes(rows: int = 3000) -> NDArray[Any]:
    """The second column repeats the first; the third is noise."""
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=rows)
    return np.stack([first, first, rng.integers(3, size=rows)], axis=1).astype(np.int8)


def run(**options: Any) -> Trained:
    keywords = {
        key: options.pop(key) for key in ("checkpoint", "resume", "on_progress", "fingerprint") if key in options
    }
    return fitted(codes(), TrainOptions(batch=100, **options), **keywords)


def fitted(rows: NDArray[Any], options: TrainOptions, **keywords: Any) -> Trained:
    return train(ColumnsTask(rows, SPEC, options), options, **keywords)


def same(one: Trained, two: Trained) -> bool:
    return all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)


def test_it_learns_what_there_is_to_learn() -> None:
    trained = run(epochs=15, learning_rate=0.01)
    entropy = 2 + np.log2(3)  # the copy costs nothing
    assert trained.report["unmasked_bits"] == pytest.approx(entropy, abs=0.1)
    assert trained.report["masked_bits"] > trained.report["unmasked_bits"]
    assert trained.report["held_out_rows"] == 30
    assert not trained.interrupted


def test_the_learning_rate_is_chosen_by_the_steps_of_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    expected_steps = []

    def rate(options: TrainOptions, fraction: float, steps: float) -> float:
        expected_steps.append(steps)
        return 1e-3

    monkeypatch.setattr(TrainOptions, "learning_rate_at", rate)
    run(epochs=2)
    assert expected_steps == pytest.approx([0, *[60] * 59])


def test_the_same_seed_gives_the_same_model_and_another_does_not() -> None:
    assert same(run(epochs=2, seed=4), run(epochs=2, seed=4))
    assert not same(run(epochs=2, seed=4), run(epochs=2, seed=5))


class Stop:
    """Presses Ctrl-C after some steps."""

    def __init__(self, after: int) -> None:
        self.steps = 0
        self.after = after

    def __call__(self, progress: Progress) -> None:
        self.steps += 1
        if self.steps == self.after:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("after", [1, 30, 47])
def test_a_stopped_run_goes_on_to_the_same_model(tmp_path: Path, after: int) -> None:
    whole = run(epochs=3)
    checkpoint = tmp_path / "run.checkpoint"
    stopped = run(epochs=3, checkpoint=checkpoint, on_progress=Stop(after))
    assert stopped.interrupted
    assert stopped.report["epochs"] == pytest.approx(after / 30, abs=0.01)
    resumed = run(epochs=3, checkpoint=checkpoint, resume=True)
    assert not resumed.interrupted
    assert same(whole, resumed)
    assert whole.report["masked_bits"] == resumed.report["masked_bits"]


def test_a_second_ctrl_c_waits_for_the_checkpoint(tmp_path: Path) -> None:
    checkpoint, stopping = tmp_path / "run.checkpoint", []

    def press_twice(progress: Progress) -> None:
        stopping.append(progress.stopping)
        if len(stopping) <= 2:  # in the first step, and when the run says that it stops
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(epochs=3, checkpoint=checkpoint, on_progress=press_twice)
    assert stopping == [False, True]
    assert same(run(epochs=3), run(epochs=3, checkpoint=checkpoint, resume=True))


def test_a_stopped_run_keeps_the_best_model_so_far() -> None:
    stopped = run(epochs=50, learning_rate=0.01, on_progress=Stop(200))
    assert stopped.interrupted
    assert stopped.report["train_bits"] == min(entry["train_bits"] for entry in stopped.report["history"])


def test_the_budget_ends_the_run_and_its_schedule() -> None:
    reports: list[Progress] = []
    trained = run(budget=1.0, on_progress=reports.append)
    assert trained.report["seconds"] >= 1.0
    assert reports[-2].fraction < reports[-1].fraction == 1.0
    assert reports[0].epochs is None


def test_a_run_that_goes_on_keeps_its_share_of_the_budget(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.checkpoint"
    first = run(budget=100.0, share=2.0, checkpoint=checkpoint, on_progress=Stop(3))
    assert first.interrupted
    resumed = run(budget=100.0, share=50.0, checkpoint=checkpoint, resume=True)
    assert not resumed.interrupted
    assert 2.0 <= resumed.report["seconds"] < 40.0
    with pytest.raises(TrainingError, match=r"its budget was 100\.0, now 99\.0"):
        run(budget=99.0, checkpoint=checkpoint, resume=True)


def test_a_run_of_less_than_an_epoch_is_measured_on_few_rows() -> None:
    row_counts: list[int] = []

    class Noted(ColumnsTask):
        def bits(self, rows: torch.Tensor, inputs: Inputs, generator: torch.Generator) -> float:
            row_counts.append(len(rows))
            return super().bits(rows, inputs, generator)

    options = TrainOptions(batch=100, epochs=2, held_out=0.2)
    stopped = train(Noted(codes(), SPEC, options), options, on_progress=Stop(2))
    assert stopped.interrupted
    assert row_counts == [256, 256, 256]
    assert stopped.report["held_out_rows"] == 256


@pytest.mark.parametrize("stop", [None, 7])
def test_the_last_progress_says_what_the_report_says(stop: int | None) -> None:
    reports: list[Progress] = []
    press = None if stop is None else Stop(stop)

    def listen(progress: Progress) -> None:
        reports.append(progress)
        if press is not None:
            press(progress)

    report = run(epochs=2, on_progress=listen).report
    for name in ("train_bits", "masked_bits", "unmasked_bits"):
        assert getattr(reports[-1], name) == report[name] is not None


def test_progress_tells_all() -> None:
    reports: list[Progress] = []
    run(epochs=2, on_progress=reports.append)
    assert [progress.epoch for progress in reports] == [1] * 30 + [2] * 30
    assert reports[0].train_bits is None
    assert reports[0].masked_bits is None
    assert reports[-1].masked_bits is not None
    assert reports[-1].seconds_left == pytest.approx(0.0)
    assert all(progress.rows_per_second > 0 for progress in reports)


def test_a_small_table_is_trained_on_whole() -> None:
    trained = fitted(codes(50), TrainOptions(epochs=2))
    assert trained.report["held_out_rows"] == 0
    assert trained.report["train_rows"] == 50


def test_one_row() -> None:
    trained = fitted(codes(1), TrainOptions(epochs=1))
    assert np.isfinite(trained.report["train_bits"])


Sets = dict[tuple[int, ...], float]
ASKED: Sets = {(0, 1): 3.0}


def with_workload(column_sets: Sets | None, **keywords: Any) -> Trained:
    options = TrainOptions(batch=100, epochs=4, learning_rate=0.01)
    return train(ColumnsTask(codes(), SPEC, options, column_sets=column_sets), options, **keywords)


class TestWorkload:
    def test_what_is_asked_is_learned_better(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The last column follows from any other: easily from its copies, and, if only it is seen, from the first."""
        first = np.arange(3000) % 32
        last = np.random.default_rng(1).permutation(32)[first]
        rows = np.column_stack([first, last, last, last, last, last]).astype(np.int8)
        spec = ModelSpec((32,) * 6, hidden=32, blocks=1, embedding=8)
        column_sets: Sets = {(0, 5): 1.0}
        options = TrainOptions(batch=100, epochs=4, learning_rate=0.01, schedule="cosine")
        tasks = [ColumnsTask(rows, spec, options, column_sets=sets) for sets in (column_sets, None)]
        for task in tasks:
            train(task, options)
        monkeypatch.setattr("countless.train.tasks.masking.WORKLOAD_SHARE", 1.0)
        judge = ColumnsTask(rows, spec, options, column_sets=column_sets)
        bits = []
        for task in tasks:
            judge.model.load_state_dict(task.model.state_dict())
            bits.append(judge.bits(torch.arange(len(rows)), "as trained", stream(0, 0)))
        assert 5.0 <= bits[0] < bits[1] - 0.2

    def test_nothing_changes_before_the_last_part(self) -> None:
        plain: list[float] = []
        fractions: list[float] = []
        with_workload(None, on_progress=lambda progress: plain.append(progress.loss))
        with_workload(ASKED, on_progress=lambda progress: fractions.append(progress.loss))
        first = int(WORKLOAD_FROM * len(plain))
        assert plain[:first] == fractions[:first]
        assert plain[first] != fractions[first]

    def test_a_stopped_run_goes_on_to_the_same_model(self, tmp_path: Path) -> None:
        whole = with_workload(ASKED)
        path = tmp_path / "c"
        assert with_workload(ASKED, checkpoint=path, on_progress=Stop(100)).interrupted
        assert same(whole, with_workload(ASKED, checkpoint=path, resume=True))

    def test_a_checkpoint_of_another_workload(self, tmp_path: Path) -> None:
        path = tmp_path / "c"
        with_workload(ASKED, checkpoint=path, on_progress=Stop(10))
        others: list[Sets | None] = [{(0, 1): 2.0}, {(0, 2): 3.0}, None]
        for other in others:
            with pytest.raises(TrainingError, match=r"its workload was '1 sets of columns \("):
                with_workload(other, checkpoint=path, resume=True)


class TestCheckpoints:
    def stopped(self, path: Path) -> None:
        run(epochs=3, checkpoint=path, on_progress=Stop(10), fingerprint="one")

    @pytest.mark.parametrize(
        ("change", "phrase"),
        [
            ({"epochs": 4}, "its epochs was 3, now 4"),
            ({"seed": 1}, "its seed was 0, now 1"),
            ({"fingerprint": "two"}, "its table was 'one', now 'two'"),
        ],
    )
    def test_of_another_run(self, tmp_path: Path, change: dict[str, Any], phrase: str) -> None:
        path = tmp_path / "c"
        self.stopped(path)
        with pytest.raises(TrainingError, match=phrase):
            run(**{"epochs": 3, "fingerprint": "one", **change}, checkpoint=path, resume=True)

    @pytest.mark.parametrize("keep", [0, 7, 1000])
    def test_cut_short(self, tmp_path: Path, keep: int) -> None:
        path = tmp_path / "c"
        self.stopped(path)
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(TrainingError, match="fit again without --resume"):
            run(epochs=3, checkpoint=path, resume=True, fingerprint="one")

    def test_nothing_to_resume_starts_anew(self, tmp_path: Path) -> None:
        assert same(run(epochs=2), run(epochs=2, checkpoint=tmp_path / "none", resume=True))

    def test_nowhere_to_write(self, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="cannot keep a checkpoint"):
            self.stopped(tmp_path / "missing" / "c")

    def test_a_disk_that_is_too_small_is_found_before_training(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
        with pytest.raises(TrainingError, match=r"takes .*kB, and 1\.0 kB are free on that disk"):
            run(epochs=2, checkpoint=tmp_path / "c")

    def test_a_full_disk_does_not_stop_training(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("countless.train.checkpoint.save_file", full)
        trained = run(epochs=2, checkpoint=tmp_path / "c")
        assert same(trained, run(epochs=2))
        assert "No space left on device; training continues without it" in caplog.text
        assert list(tmp_path.iterdir()) == []


def test_training_goes_on_from_given_weights() -> None:
    options = TrainOptions(batch=100, epochs=3, learning_rate=0.01)
    before = fitted(codes(), options)
    slow = TrainOptions(batch=100, epochs=1, learning_rate=1e-6)
    after = train(ColumnsTask(codes(), SPEC, slow, start=before.arrays), slow)
    assert not same(before, after)
    for name, array in before.arrays.items():
        np.testing.assert_allclose(after.arrays[name], array, atol=1e-3, err_msg=name)


def test_windows_of_a_file_are_learned_as_well_as_rows_in_memory() -> None:
    options = TrainOptions(batch=100, epochs=15, learning_rate=0.01)
    task = ColumnsTask(codes(), SPEC, options)
    task.window = 500
    trained = train(task, options)
    assert trained.report["unmasked_bits"] == pytest.approx(2 + np.log2(3), abs=0.1)
