"""``countless fit --memory``: the folder of codes comes, is kept after a stop, and goes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from countless.cli.terminal.fit_progress import FitView
from countless.data.encoding.code_files import CodesFolder
from countless.estimator.estimator import Estimator
from countless.train.loop import Progress
from tests.cli.test_cli import FAST, Run, run

__all__ = ["run"]


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has a limit goes to files, even a small table."""
    monkeypatch.setattr("countless.data.encoding.memory_limit.CODES_SHARE", 0.0)
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: None)


def test_a_large_table_needs_no_option(run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: 3 * 10**9)
    result = run("fit", people, "-o", tmp_path / "m.countless", "--exclude", "id", *FAST)
    assert result.code == 0, result.err
    assert "of the 3GB of memory that the fit may use: it is kept on disk and read from there" in result.err
    assert "the encoded table was kept on disk" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.countless"]


def test_the_folder_goes_after_success(run: Run, people: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    result = run("fit", people, "-o", model, "--memory", "1GB", "--sample-rows", 1_000, "--exclude", "id", *FAST)
    assert result.code == 0, result.err
    for stage in ("counting distinct values", "encoding rows", "shuffling rows", "training"):
        assert f"{stage} ..." in result.err
    assert "rows/s" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.countless"]
    assert Estimator.load(model).rows == 3_000


def test_ctrl_c_while_the_table_is_read(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    codes = tmp_path / "m.countless.codes"

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CodesFolder, "write_part", stop)
        result = run("fit", people, "-o", model, "--memory", "1GB", *FAST)
    assert result.code == 130
    assert f"interrupted while shuffling rows: what is done is kept in {codes}; add --resume to continue" in result.err
    assert result.err.count("interrupted") == 1
    assert "" not in result.err.splitlines()
    assert "Traceback" not in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [codes.name, "m.countless.run"]
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: 9 * 10**9)
    result = run("fit", people, "-o", model, "--resume", *FAST)
    assert result.code == 0, result.err
    assert f"continuing from {codes}" in result.err
    assert "encoding rows" not in result.err
    assert "shuffling rows" in result.err
    assert not codes.exists()


def test_ctrl_c_before_anything_is_kept(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("countless.estimator.fitting.fit.EvidenceRows.drawn", stop)
    result = run("fit", people, "-o", tmp_path / "m.countless", *FAST)
    assert result.code == 130
    last = "interrupted while drawing evidence rows: nothing was kept yet, so the same command starts again"
    assert result.err.splitlines()[-1] == last
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("numbers", "code", "how"),
    [((signal.SIGINT, signal.SIGINT), 130, "interrupted"), ((signal.SIGTERM,), 143, "terminated")],
)
def test_what_was_trained_is_kept_at_a_second_ctrl_c_and_sigterm(
    run: Run,
    people: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    numbers: tuple[signal.Signals, ...],
    code: int,
    how: str,
) -> None:
    model, checkpoint = tmp_path / "m.countless", tmp_path / "m.countless.checkpoint"
    training, pressed = FitView.training, iter(numbers)

    def press(view: FitView, progress: Progress) -> None:
        training(view, progress)
        if number := next(pressed, None):
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(FitView, "training", press)
        result = run("fit", people, "-o", model, "--exclude", "id", *FAST)
    assert result.code == code
    is_told = "Ctrl-C: training stops; its error bars and the model file come next" in result.err
    assert is_told == (how == "interrupted")
    assert result.err.splitlines()[-1] == (
        f"{how} while training: what is done is kept in {checkpoint}; add --resume to continue"
    )
    assert sorted(tmp_path.iterdir()) == [checkpoint, tmp_path / "m.countless.run"]
    result = run("fit", people, "-o", model, "--exclude", "id", "--resume", *FAST)
    assert result.code == 0, result.err
    assert f"continuing from {checkpoint}" in result.err


@pytest.mark.parametrize("memory", [("--memory", "1GB"), ()])
def test_ctrl_c_after_training(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: tuple[str, ...]
) -> None:
    model = tmp_path / "m.countless"

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("countless.estimator.fitting.calibrating.mixed_clauses", stop)
        result = run("fit", people, "-o", model, "--exclude", "id", *memory, *FAST)
    assert result.code == 130
    message = result.err.splitlines()[-1]
    assert message.startswith("interrupted while calibrating, after training was finished: what is done is ")
    assert message.endswith("add --resume to continue, which needs only a moment")
    assert result.err.count("interrupted") == 1
    assert "" not in result.err.splitlines()
    assert not model.exists()
    result = run("fit", people, "-o", model, "--exclude", "id", *memory, "--resume", *FAST)
    assert result.code == 0, result.err
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


def test_what_differs_is_told_and_what_was_spilled_removed(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    spilled = tmp_path / "m.countless.codes-spill-x1"
    spilled.mkdir()
    (spilled / "duckdb_temp").write_bytes(b"rest")

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CodesFolder, "write_part", stop)
    assert run("fit", people, "-o", model, "--memory", "1GB", *FAST).code == 130
    assert not spilled.exists()
    result = run(
        "fit", people, "-o", model, "--memory", "1GB", "--resume", "--exclude", "id", "--max-distinct", 9, *FAST
    )
    assert result.code == 1
    assert "holds codes of another --exclude, --max-distinct: fit again without --resume" in result.err
    assert "encoding rows" not in result.err


def test_a_foreign_folder_of_that_name_is_left_alone(run: Run, people: Path, tmp_path: Path) -> None:
    codes = tmp_path / "m.codes"
    codes.mkdir()
    (codes / "photo.jpg").write_bytes(b"dear")
    result = run("fit", people, "-o", tmp_path / "m", "--memory", "1GB", *FAST)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith(f"error: {codes} exists and is not a folder of codes")
    assert run("fit", people, "-o", tmp_path / "m", *FAST).code == 0
    assert (codes / "photo.jpg").exists()


@pytest.mark.parametrize("amount", ["2", "much", "200MB"])
def test_no_amount_of_memory(run: Run, people: Path, tmp_path: Path, amount: str) -> None:
    result = run("fit", people, "-o", tmp_path / "m", "--memory", amount)
    assert result.code == 2
    assert "--memory" in result.err
    assert list(tmp_path.iterdir()) == []
