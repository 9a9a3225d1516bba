"""The service as a process: how it starts, what it refuses to start with, and how it stops."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from countless.errors import CountlessError, ModelFileError, SourceError
from countless.serve.models import load_models
from countless.serve.server import listen
from tests.cli.test_cli import Run, run

__all__ = ["run"]


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A Python that serves, and its port; it is ended if it has not ended by itself."""
    started = subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)], stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert started.stderr is not None
    try:
        for line in started.stderr:
            if line.startswith("serving at "):
                yield started, int(line.rstrip("/\n").rpartition(":")[2])
                return
        raise AssertionError("it did not start")
    finally:
        started.kill()
        started.wait()
        started.stderr.close()


def ask(port: int) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v1/models/people/estimate", '{"where": "TRUE"}', {"Content-Type": "application/json"})
    reply = connection.getresponse()
    answer = reply.status, json.loads(reply.read())
    connection.close()
    return answer


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_stops_when_it_has_answered_what_was_asked(model: Path, number: signal.Signals, code: int) -> None:
    with process("tests.serve.slow_service", model, 1, 10) as (started, port), ThreadPoolExecutor(1) as pool:
        future = pool.submit(ask, port)
        assert started.stderr is not None
        assert started.stderr.readline() == "asked\n"
        started.send_signal(number)
        status, body = future.result()
        assert status == 200
        assert body["estimates"][0]["rows"] == 3000
        assert started.wait(10) == code
        with pytest.raises(ConnectionRefusedError):
            ask(port)


def test_it_does_not_wait_for_what_was_refused(model: Path) -> None:
    with process("tests.serve.slow_service", model, 600, 0.2) as (started, port):
        assert ask(port)[0] == 408
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0


def test_the_command(model: Path, people: Path) -> None:
    arguments = ["serve", model, "--table", f"people={people}", "--port", 0, "--access-log"]
    with process("countless.cli.main", *arguments) as (started, port):
        assert ask(port)[0] == 200
        started.send_signal(signal.SIGTERM)
        assert started.wait(10) == 0
        assert started.stderr is not None
        line, stopped = started.stderr.read().splitlines()
        assert " 127.0.0.1 POST /v1/models/people/estimate 200 " in line
        assert stopped == "stopped"


class TestWhatItDoesNotStartWith:
    def test_others_can_reach_it(self, run: Run, model: Path) -> None:
        result = run("serve", model, "--host", "0.0.0.0")
        assert result.code == 2
        assert "give a --token" in result.err

    def test_a_token_and_none(self, run: Run, model: Path) -> None:
        assert run("serve", model, "--token", "x", "--no-auth").code == 2
        assert "the token is empty" in run("serve", model, "--token", "").err

    def test_a_token_file(self, run: Run, model: Path, tmp_path: Path) -> None:
        result = run("serve", model, "--token-file", tmp_path / "no")
        assert (result.code, "cannot be read: No such file" in result.err) == (1, True)
        (tmp_path / "empty").write_text("\n", encoding="utf-8")
        assert "the token is empty" in run("serve", model, "--token-file", tmp_path / "empty").err

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (["--table", "{people}"], "a table is given as NAME=TABLE"),
            (["--table", "persons={people}"], 'no model is called "persons": the models are people, again'),
            (["again={model}"], 'two models would be called "again"'),
            (["--timeout", "0"], "must be more than zero"),
            (["--timeout", "soon"], "is not a time: write 90s, 5m or 1h30m"),
            (["--trusted-proxy", "nginx"], "give an address such as 10.0.0.5"),
            (["--client-burst", "5"], "--client-burst says how --client-rate is counted"),
            (["--log-clauses"], "--log-clauses adds to the lines of --access-log"),
            (["--token", "x", "--token-file", "{people}"], "give either --token or --token-file"),
        ],
    )
    def test_a_wrong_option(self, run: Run, model: Path, people: Path, given: list[str], words: str) -> None:
        result = run("serve", model, f"again={model}", *(each.format(people=people, model=model) for each in given))
        assert result.code == 2
        assert words in result.err

    @pytest.mark.parametrize("origin", ["foo", "example.org", "https://example.org/", "https://a b", "https://*.org"])
    def test_no_origin(self, run: Run, model: Path, origin: str) -> None:
        result = run("serve", model, "--cors", origin)
        assert result.code == 2
        assert "give one such as https://example.org, or * for all" in result.err

    def test_a_missing_or_damaged_model(self, run: Run, tmp_path: Path) -> None:
        result = run("serve", tmp_path / "no.countless")
        assert result.code == 1
        assert result.err.startswith("error: no such model file")
        assert len(result.err.splitlines()) == 1
        (tmp_path / "bad.countless").write_bytes(b"PK nothing")
        result = run("serve", tmp_path / "bad.countless")
        assert result.code == 1
        assert "bad.countless" in result.err
        assert len(result.err.splitlines()) == 1

    def test_a_port_that_is_taken(self, run: Run, model: Path) -> None:
        with listen("127.0.0.1", 0) as taken:
            result = run("serve", model, "--port", taken.getsockname()[1])
        assert result.code == 1
        assert "choose another --host or --port" in result.err

    def test_no_such_address(self) -> None:
        with pytest.raises(CountlessError, match="cannot listen at 192"):
            listen("192.0.2.1", 0)

    def test_a_missing_extra(self, run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in sys.modules if name.startswith("countless.serve")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "fastapi", None)
        result = run("serve", model)
        assert result.code == 1
        assert result.err == "error: the service needs more packages: pip install 'countless[serve]'\n"


class TestNames:
    def test_equal_names(self, model: Path, tmp_path: Path) -> None:
        other = Path(shutil.copy(model, tmp_path / model.name))
        with pytest.raises(CountlessError, match=r'two models would be called "people".* as in people2='):
            load_models([str(model), str(other)])
        models = load_models([str(model), f"again={other}"])
        assert [(served.name, served.line["name"]) for served in models.values()] == [
            ("people", "people"),
            ("again", "again"),
        ]

    @pytest.mark.parametrize("given", ["={}", "a/b={}", " ={}", "."])
    def test_no_names(self, model: Path, given: str) -> None:
        with pytest.raises(CountlessError, match="given as MODEL or NAME=MODEL"):
            load_models([given.format(model)])

    def test_a_file_with_an_equals_sign(self, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shutil.copy(model, tmp_path / "a=b.countless")
        monkeypatch.chdir(tmp_path)
        assert list(load_models(["a=b.countless"])) == ["a=b"]

    def test_tables(self, model: Path, people: Path, tmp_path: Path) -> None:
        with pytest.raises(CountlessError, match="given as NAME=TABLE"):
            load_models([str(model)], [str(people)])
        with pytest.raises(CountlessError, match='no model is called "persons": the models are people'):
            load_models([str(model)], [f"persons={people}"])
        with pytest.raises(SourceError, match="no such file"):
            load_models([str(model)], [f"people={tmp_path / 'no.parquet'}"])
        (tmp_path / "other.csv").write_text("age\n3\n", encoding="utf-8")
        with pytest.raises(SourceError, match="the table that the model was fitted to"):
            load_models([str(model)], [f"people={tmp_path / 'other.csv'}"])
        with pytest.raises(ModelFileError):
            load_models([str(tmp_path / "no.countless")], [f"no={people}"])

    def test_a_table_in_several_files(self, model: Path, people: Path, tmp_path: Path) -> None:
        for part in ("a", "b"):
            shutil.copy(people, tmp_path / f"{part}.parquet")
        table = load_models([str(model)], [f"people={tmp_path}/*.parquet"])["people"].table
        assert table is not None
        assert table.count("TRUE") == 6000


def test_answers_are_not_held_back() -> None:
    """asyncio switches Nagle's algorithm off, but only if it is told that the protocol is TCP."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        assert (listening.type, listening.proto) == (socket.SOCK_STREAM, socket.IPPROTO_TCP)
