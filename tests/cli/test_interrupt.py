"""Ctrl-C while a command starts, works and ends: a word, the exit code 130, and no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send to another process")
ROOT = Path(__file__).parents[2]


@contextmanager
def command(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which tells each module that it has loaded; ended in some minutes."""
    started = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "countless_command", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT / "src",
        preexec_fn=_hear_interrupts,
    )
    alarm = threading.Timer(300, started.kill)
    alarm.start()
    try:
        yield started
    finally:
        alarm.cancel()
        started.kill()
        started.communicate()


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore them


def interrupted_at(started: subprocess.Popen[str], word: str) -> tuple[int, list[str]]:
    """The exit code, and what is told but the modules, of a command that is interrupted when it has told ``word``."""
    assert started.stderr is not None
    lines = []
    for line in started.stderr:
        lines.append(line.rstrip("\n"))
        if word in line.split():
            started.send_signal(signal.SIGINT)
            break
    lines += started.stderr.read().splitlines()
    # Click begins a new line if it hears the signal first.
    return started.wait(), [line for line in lines if line and not line.startswith("import time:")]


@pytest.mark.parametrize("module", ["numpy", "countless", "click", "countless.cli.main"])
def test_while_the_package_is_loaded(module: str) -> None:
    with command("estimate", "no.countless", "TRUE") as started:
        assert interrupted_at(started, module) == (130, ["interrupted"])


@pytest.mark.parametrize("module", ["_duckdb", "sqlglot", "countless.query.compile"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "upper(city) = 'OSLO'"),
        ("sample", "--where", "age > 3"),
    ],
)
def test_while_the_parser_is_loaded(model: Path, arguments: tuple[str, ...], module: str) -> None:
    name, *others = arguments
    with command(name, model, *others) as started:
        assert interrupted_at(started, module) == (130, ["interrupted"])


def test_hardly_anything_is_loaded_before_interrupts_are_heard() -> None:
    script = (
        "import sys; before = set(sys.modules); import countless_command; print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT / "src", check=True
    )
    assert result.stdout.split() == ["__future__", "countless_command"]


@pytest.mark.parametrize(
    "module",
    [
        "countless.cli.parameters.options",
        "_duckdb",
        "sqlglot",
        "pydantic",
        "fastapi",
        "uvicorn",
        "countless.serve.server",
    ],
)
def test_while_the_service_starts(model: Path, module: str) -> None:
    with command("serve", model, "--port", 0) as started:
        assert interrupted_at(started, module) == (130, ["interrupted"])


def test_while_a_module_of_fitting_is_loaded(people: Path, tmp_path: Path) -> None:
    with command("fit", people, "-o", tmp_path / "x.countless", "--epochs", "1") as started:
        code, lines = interrupted_at(started, "torch.fx")
    assert code == 130
    assert "interrupted" in lines[-1]
    assert not any("Traceback" in line for line in lines)


def test_the_service_stops_once_it_serves(model: Path) -> None:
    with command("serve", model, "--port", 0) as started:
        code, lines = interrupted_at(started, "serving")
    assert code == 130
    assert lines[-1] == "stopped"


def test_twice_while_the_service_stops(model: Path) -> None:
    with command("serve", model, "--port", 0) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if line.startswith("serving"):
                started.send_signal(signal.SIGINT)
                started.send_signal(signal.SIGINT)
                break
        rest = [line for line in started.stderr.read().splitlines() if not line.startswith("import time:")]
        assert started.wait() == 130
        assert rest in (["stopped"], ["interrupted"], ["stopped", "interrupted"])


def test_when_the_service_has_stopped(model: Path) -> None:
    with command("serve", model, "--port", 0) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if line.startswith("serving"):
                started.send_signal(signal.SIGINT)
            if line.startswith("stopped"):
                started.send_signal(signal.SIGINT)
                break
        rest = [line for line in started.stderr.read().splitlines() if not line.startswith("import time:")]
        assert started.wait() == 130
        assert rest in ([], ["interrupted"])


def test_when_all_is_told(model: Path) -> None:
    with command("estimate", model, "TRUE") as started:
        assert started.stdout is not None
        assert started.stderr is not None
        assert "3,000" in started.stdout.readline()
        started.send_signal(signal.SIGINT)
        lines = [line for line in started.stderr.read().splitlines() if not line.startswith("import time:")]
        assert (started.wait(), [line for line in lines if line]) in (
            (0, []),
            (130, ["interrupted"]),
            (-signal.SIGINT, []),
        )


def test_who_ignores_interrupts_goes_on_to_do_so(model: Path) -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from countless_command import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script, "estimate", str(model), "TRUE"],
        capture_output=True,
        text=True,
        cwd=ROOT / "src",
        timeout=300,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
