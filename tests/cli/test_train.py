"""``countless train``: a finished model is trained longer, and what that needs lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countless import load
from countless.cli.model_files import files_beside
from countless.data.sources.source import Source, connect
from tests.cli.test_cli import Run, run

__all__ = ["run"]

FAST = ("--epochs", 1, "--hidden", 16, "--blocks", 1, "--embedding", 8)


@pytest.fixture
def table(people: Path, tmp_path: Path) -> Path:
    path = tmp_path / "some.parquet"
    connect().execute(f"COPY (SELECT age, city, married FROM '{people}' LIMIT 500) TO '{path}'")
    return path


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_model_is_trained_longer_with_the_command_that_its_fit_tells(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    result = run("fit", table, "-o", model, "--evidence", 100, *FAST)
    assert result.code == 0, result.err
    checkpoint = tmp_path / "m.countless.training"
    assert f"wrote {checkpoint} (" in result.err
    assert "): it is for countless train, and may be deleted" in result.err
    assert f"train longer: countless train {model} {table} --budget 1m" in result.err
    assert files(tmp_path) == ["m.countless", "m.countless.training", "some.parquet"]
    result = run("train", model, table, "--epochs", 3)
    assert result.code == 0, result.err
    assert "rows: 3 more epochs in " in result.err
    assert "training starts from the weights" not in result.err
    assert f"wrote {model} (" in result.err
    assert load(model).report["epochs"] == 4.0
    assert files(tmp_path) == ["m.countless", "m.countless.training", "some.parquet"]
    checkpoint.unlink()
    result = run("train", model, table, "--epochs", 1, "-o", tmp_path / "other")
    assert result.code == 0, result.err
    assert "there is no" in result.err
    assert load(model).report["epochs"] == 4.0
    assert load(tmp_path / "other").report["epochs"] == 5.0
    assert files(tmp_path) == ["m.countless", "other", "other.training", "some.parquet"]


def test_what_training_needs_is_not_kept_if_it_is_large_or_unwanted(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    assert "m.countless.training" in files(tmp_path)
    assert run("fit", table, "-o", model, *FAST, "--no-keep-training").code == 0
    assert files(tmp_path) == ["m.countless", "some.parquet"]  # that of the earlier fit is of no use
    monkeypatch.setattr(files_beside, "MOST_KEPT", 1_000)
    result = run("fit", table, "-o", model, *FAST)
    assert "m.countless.training is not kept, since it would take " in result.err
    assert files(tmp_path) == ["m.countless", "some.parquet"]
    assert run("fit", table, "-o", model, *FAST, "--keep-training").code == 0
    assert "m.countless.training" in files(tmp_path)


def test_a_table_that_has_changed_is_one_line_and_the_model_stays(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    changed = tmp_path / "changed.parquet"
    connect().execute(f"COPY (SELECT age, city, NOT married AS married FROM '{table}') TO '{changed}'")
    changed.replace(table)
    before, left = model.read_bytes(), files(tmp_path)
    result = run("train", model, table, "-o", tmp_path / "other")
    assert result.code == 1
    assert "error: this is not the table that the model was fitted on, or it has changed" in result.err
    assert "countless update" in result.err
    assert model.read_bytes() == before
    assert files(tmp_path) == left


def test_an_interrupt_while_calibrating_leaves_the_model_as_it_was(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    before = model.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Source, "counts", stop)
        result = run("train", model, table, "--epochs", 1)
    assert result.code == 130
    assert f"stopped, and nothing was written: {model} is unchanged" in result.err
    assert model.read_bytes() == before


def test_a_stopped_fit_goes_on_for_another_time_with_train(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST, "--no-keep-training").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Source, "counts", stop)
        assert run("fit", table, "-o", model, *FAST, "--seed", 1).code == 130
    assert "m.countless.checkpoint" in files(tmp_path)
    result = run("fit", table, "-o", model, "--resume", "--budget", "5s", *FAST[2:], "--seed", 1)
    assert result.code == 1
    assert "--budget was not given, now 5.0, --epochs was 1, now not given" in result.err
    assert f"to train it longer: countless train {model} {table} --budget 5m" in result.err
    result = run("train", model, table, "--epochs", 1)
    assert result.code == 0, result.err
    assert files(tmp_path) == ["m.countless", "m.countless.training", "some.parquet"]


def test_a_finished_fit_with_another_time_is_not_begun_anew(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", table, "-o", model, *FAST).code == 0
    before = model.read_bytes()
    result = run("fit", table, "-o", model, "--resume", "--budget", "5s", *FAST[2:])
    assert result.code == 0
    assert f"to train it longer: countless train {model} {table} --budget 5m" in result.err
    assert model.read_bytes() == before
