"""``countless calibrate``, and what a fit says that could not calibrate or write its model."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import duckdb
import pytest

from countless import load
from countless.cli.model_files.longer_training import table_words
from countless.data.sources.source import Source
from countless.estimator.estimator import Estimator
from tests.cli.test_cli import FAST, Run, run

__all__ = ["run"]


def fails(*_: object, **__: object) -> list[int]:
    raise MemoryError


@pytest.mark.parametrize("database", [False, True])
def test_a_fit_that_cannot_calibrate_writes_the_model_and_the_remedy_works(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: bool
) -> None:
    table, model = tmp_path / "it's people.parquet", tmp_path / "m.countless"
    shutil.copy(people, table)
    source: list[object] = [table]
    if database:
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
            connection.execute(f"CREATE TABLE people AS FROM '{people}'")
            connection.execute("CREATE TABLE others AS FROM people")
        source = [tmp_path / "shop.duckdb", "--table", "people"]
    before = set(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Source, "counts", fails)
        result = run("fit", *source, "-o", model, "--exclude", "id", "--evidence", "none", *FAST)
    assert result.code == 1
    assert set(tmp_path.iterdir()) - before == {model}  # no checkpoint is needed any more
    last = result.err.splitlines()[-1]
    assert last.startswith(f"error: {model} is written, but it could not be calibrated (MemoryError): until then, ")
    assert load(model).estimate("age < 30 AND married AND city = 'Rome'", summary=False).high == 3_000
    assert "countless calibrate MODEL TABLE" in run("info", model).out
    remedy = shlex.split(last.partition("To calibrate it: ")[2])
    assert remedy[:2] == ["countless", "calibrate"]
    result = run(*remedy[1:])
    assert result.code == 0, result.err
    assert "calibration questions are inside their 90% error bar" in result.err
    assert load(model).calibration.queries
    assert "missing" not in load(model).report


def test_the_same_model_gets_other_bars(run: Run, model: Path, people: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.countless"
    before = model.read_bytes()
    assert run("calibrate", model, people, "--seed", "5", "-o", other).code == 0
    assert model.read_bytes() == before
    was, now = Estimator.load(model), Estimator.load(other)
    assert was.calibration != now.calibration
    assert was.estimate("age < 30 AND married").rows == now.estimate("age < 30 AND married").rows
    assert [path.name for path in tmp_path.iterdir()] == [other.name]


def test_a_stop_or_an_error_leaves_the_model(
    run: Run, model: Path, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Path(shutil.copy(model, tmp_path / "m.countless"))
    assert run("calibrate", copied, tmp_path / "nothing.parquet").code == 1
    assert run("calibrate", tmp_path / "no.countless", people).code == 1

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Source, "counts", stop)
    result = run("calibrate", copied, people)
    assert result.code == 130
    assert copied.read_bytes() == model.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [copied.name]


def test_a_full_disk_when_the_model_is_written(
    run: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "m.countless"
    fit = ("fit", people, "-o", output, "--exclude", "id", *FAST)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("countless.store.model_file._write_archive", full)
        result = run(*fit)
    assert result.code == 1
    last = result.err.splitlines()[-1]
    assert f"cannot write {output}: No space left on device" in last
    assert last.endswith(f"kept in {output}.checkpoint: then add --resume, which needs only a moment")
    result = run(*fit, "--resume")
    assert result.code == 0, result.err
    assert load(output).calibration.queries


def test_no_password_is_repeated() -> None:
    assert table_words("postgresql://ann:s3cret@db/shop", "orders") == ["postgresql://ann@db/shop::orders"]
    assert table_words("shop.duckdb", None, "SELECT 1") == ["shop.duckdb::SELECT 1"]
    assert table_words("people.parquet") == ["people.parquet"]
