"""A full disk is a line that names a remedy, with exit code 1, and leaves no part of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from countless.cli.main import main
from countless.errors import DataError
from countless.estimator.estimator import Estimator
from countless.workload import Query
from countless.workload import save as save_queries

resource = pytest.importorskip("resource", reason="the size of files cannot be limited here")
FULL = Path("/dev/full")
needs_dev_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Writing a larger file fails, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run(*arguments: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@needs_dev_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "MODEL", "age > 30"),
        ("estimate", "MODEL", "age > 30", "--json"),
        ("info", "MODEL"),
        ("sample", "MODEL", "--count", "2000"),
        ("distribution", "MODEL", "city"),
        ("explain", "MODEL", "age > 30"),
        ("--help",),
    ],
)
def test_standard_output(
    model: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run(*(str(model) if word == "MODEL" else word for word in arguments)) == 1
        monkeypatch.undo()
    errors = capfd.readouterr().err
    assert errors.count("\n") == 1
    assert "error: cannot write the output: No space left on device; free some space" in errors


@needs_dev_full
def test_standard_error_too(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert run("estimate", str(model), "agee > 30") == 1
        monkeypatch.undo()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("sample", "MODEL", "--count", "3000", "-o", "OUT"),
        ("distribution", "MODEL", "age", "city", "-o", "OUT"),
        ("complete", "MODEL", "TABLE", "-o", "OUT"),
        ("anomalies", "MODEL", "TABLE", "--top", "500", "-o", "OUT"),
    ],
)
def test_a_table(
    model: Path,
    people: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    ending: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / f"out.{ending}"
    out.write_text("old")
    words = {"MODEL": str(model), "TABLE": str(people), "OUT": str(out)}
    with files_of_at_most(1_000):
        assert run(*(words.get(word, word) for word in arguments)) == 1
    message = capfd.readouterr().err.strip().splitlines()[-1]
    assert message.startswith(f"error: cannot write {out}: File too large; nothing was changed: free some space")
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    with files_of_at_most(1_000), pytest.raises(DataError, match="File too large; nothing was changed"):
        save_queries(path, [Query("age > 30", 5)] * 1_000)
    assert not list(tmp_path.iterdir())


def test_what_is_no_file_is_not_replaced(estimator: Estimator, tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(DataError, match="it is not a regular file"):
        estimator.sample(3).write(folder)
    assert folder.is_dir()
