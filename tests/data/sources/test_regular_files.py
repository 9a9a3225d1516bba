"""Only files are read: a pipe would be waited for without a word, and a device may have no end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from countless.cli.main import main
from countless.data.sources import regular_files as files
from countless.data.sources.duckdb_file import open_database
from countless.data.sources.location import Location
from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError, ModelFileError, SourceError
from countless.estimator.estimator import Estimator
from countless.store import is_model
from countless.workload import load as load_queries
from countless.workload import read_clauses

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe that nobody writes to."""
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    return path


def run(*arguments: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


class TestPipes:
    def test_a_model(self, pipe: Path) -> None:
        with pytest.raises(ModelFileError, match=r"cannot read .*: it is not a regular file but a pipe; give the path"):
            Estimator.load(pipe)
        assert not is_model(pipe)

    def test_a_table(self, pipe: Path) -> None:
        with pytest.raises(SourceError, match="but a pipe"):
            Source.open(pipe)

    def test_a_table_among_others(self, pipe: Path, tmp_path: Path) -> None:
        (tmp_path / "file.csv").write_text("a\n1\n")
        with pytest.raises(SourceError, match="but a pipe"):
            Source.open(str(tmp_path / "*.csv"))

    def test_a_database(self, pipe: Path) -> None:
        with pytest.raises(SourceError, match="but a pipe"):
            open_database(Location(str(pipe)), "x")

    def test_workloads(self, pipe: Path) -> None:
        with pytest.raises(DataError, match="but a pipe"):
            read_clauses(pipe)
        with pytest.raises(DataError, match="but a pipe"):
            load_queries(pipe)

    def test_the_workload_of_a_fit(self, pipe: Path, people: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("fit", str(people), "-o", str(pipe.parent / "m"), "--workload", str(pipe)) == 1
        assert "but a pipe" in capfd.readouterr().err

    def test_clauses(self, pipe: Path, model: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("estimate", str(model), "--file", str(pipe)) == 1
        assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
class TestDevices:
    def test_a_model(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("estimate", "/dev/zero", "a = 1") == 1
        assert capfd.readouterr().err == (
            "error: cannot read /dev/zero: it is not a regular file but a device; give the path of a file\n"
        )

    def test_clauses(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/dev/zero")
        for path in ("/dev/zero", str(tmp_path / "link")):
            assert run("estimate", str(model), "--file", path) == 1

    def test_a_table(self, tmp_path: Path) -> None:
        (tmp_path / "zero.csv").symlink_to("/dev/zero")
        with pytest.raises(CountlessError, match="but a device"):
            Source.open(tmp_path / "zero.csv")

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match="but a directory"):
            Estimator.load(tmp_path)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input(
    name: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clauses = tmp_path / "clauses.sql"
    clauses.write_text("age > 30\n-- nothing\nage <= 30\n")
    with clauses.open() as given:
        monkeypatch.setattr(sys, "stdin", given)
        assert run("estimate", str(model), "--file", name) == 0
    assert capfd.readouterr().out.count("\n") == 2


def test_what_a_shell_hands_over_for_a_command(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write("age > 30\n")
    try:
        assert run("estimate", str(model), "--file", f"/dev/fd/{reading}") == 0
    finally:
        os.close(reading)
    assert "age > 30" in capfd.readouterr().out


def test_a_text_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_TEXT", 100)
    path = tmp_path / "long.sql"
    path.write_text("a = 1\n" * 100)
    with pytest.raises(DataError, match="more than 100 characters; split it"):
        read_clauses(path)
