"""Two commands never write one model file at the same time, and a killed one holds nobody up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from countless.cli.model_files.locking import held, lock_of
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from tests.cli.test_cli import FAST, Run, run

__all__ = ["run"]


def test_a_second_fit_is_refused_and_a_killed_one_is_succeeded(run: Run, people: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    fit = ["fit", str(people), "-o", str(model), "--exclude", "id", "--hidden", "16", "--epochs", "100000"]
    process = subprocess.Popen([sys.executable, "-m", "countless.cli.main", *fit], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any("epoch" in line for line in process.stderr)
        result = run("fit", people, "-o", model, *FAST)
        assert result.code == 1
        assert result.err.startswith(f"error: process {process.pid} (countless fit) is writing {model}: wait until")
        assert "counting" not in result.err
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert lock_of(model).exists()
    stray = tmp_path / "m.countless.x1y2z3w4.partial"
    stray.write_bytes(b"a model that was cut short")
    result = run("fit", people, "-o", model, "--exclude", "id", *FAST)
    assert result.code == 0, result.err
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


@pytest.mark.parametrize("command", ["fit", "update", "calibrate"])
def test_who_writes_is_told(run: Run, model: Path, people: Path, tmp_path: Path, command: str) -> None:
    output = Path(shutil.copy(model, tmp_path / "m.countless"))
    before = output.read_bytes()
    with held("calibrate", output):
        result = run(*([command, people, "-o", output] if command == "fit" else [command, output, people]))
    assert result.code == 1
    assert f"process {os.getpid()} (countless calibrate) is writing {output}" in result.err
    assert output.read_bytes() == before
    assert not lock_of(output).exists()


def test_a_lock_ends_with_its_block(tmp_path: Path) -> None:
    output = tmp_path / "m"
    for _ in range(2):
        with held("fit", output), pytest.raises(ModelFileError, match="nothing was changed"), held("fit", output):
            pass
    assert not lock_of(output).exists()
    lock_of(output).write_text("not ours")  # of whoever: nobody holds it
    with held("fit", output):
        pass


def test_saving_removes_what_a_killed_update_left(estimator: Estimator, tmp_path: Path) -> None:
    stray = tmp_path / "m.countless.a1b2c3d4.partial"
    stray.write_bytes(b"cut short")
    estimator.save(tmp_path / "m.countless")
    assert [path.name for path in tmp_path.iterdir()] == ["m.countless"]
