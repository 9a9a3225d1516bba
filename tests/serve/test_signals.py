"""The service as a process: SIGHUP, SIGTERM, and clients that keep it waiting."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from countless import Estimator
from tests.serve.test_process import ask, process

# The service, which waits for long where it loads its models.
LOADING = """
import sys, time
import countless.serve.models as models
models.load_models = lambda *given: [print("loading", flush=True), time.sleep(60)]
import countless_command
countless_command.main()
"""


def obey_hangups() -> None:
    """For a process before it starts: what nohup started ignores SIGHUP, and so would its children."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    with contextlib.closing(connection):
        return connection.getresponse().status


def test_hangup_loads_the_files_again_and_the_log_is_json(model: Path, estimator: Estimator, tmp_path: Path) -> None:
    file = Path(shutil.copy(model, tmp_path / "people.countless"))
    arguments = ["serve", file, "--port", 0, "--no-watch", "--access-log", "--log-format", "json"]
    started = subprocess.Popen(
        [sys.executable, "-m", "countless.cli.main", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=obey_hangups,
    )
    try:
        assert started.stderr is not None
        lines = map(json.loads, started.stderr)
        assert next(lines)["message"] == "people: 3,000 rows, 5 columns"
        port = int(next(lines)["message"].rstrip("/").rpartition(":")[2])
        assert ask(port)[0] == 200
        assert next(lines)["status"] == 200
        os.replace(shutil.copy(model, tmp_path / "new"), file)
        started.send_signal(signal.SIGHUP)
        loaded = next(lines)
        assert (loaded["level"], loaded["message"].startswith("people: loaded again in ")) == ("info", True)
        file.write_bytes(b"nothing")
        started.send_signal(signal.SIGHUP)
        failed = next(lines)
        assert failed["level"] == "error"
        assert "the model of before is served" in failed["message"]
        assert ask(port)[0] == 200
        started.terminate()
        assert started.wait(20) == 0
        assert [line.get("message") for line in lines] == [None, "stopped"]
    finally:
        started.kill()
        started.wait()
        if started.stderr is not None:
            started.stderr.close()


def test_a_closed_terminal_ends_it(model: Path) -> None:
    """Who closes a terminal sends SIGHUP too, and wants no service that nobody sees."""
    child, terminal = pty.fork()
    if child == 0:
        obey_hangups()
        os.execv(sys.executable, [sys.executable, "-m", "countless.cli.main", "serve", str(model), "--port", "0"])
    said = b""
    while b"serving at" not in said:
        said += os.read(terminal, 1000)
    os.kill(child, signal.SIGHUP)  # the terminal is still there: it goes on
    while b"loaded again" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, 1)  # its last words may have nowhere to go


def test_it_drains_before_it_stops(model: Path) -> None:
    with process("countless.cli.main", "serve", model, "--port", 0, "--drain", "2s") as (started, port):
        assert status(port, "/readyz") == 200
        started.terminate()
        while status(port, "/readyz") == 200:
            time.sleep(0.02)
        assert status(port, "/readyz") == 503
        assert status(port, "/healthz") == 200
        assert ask(port)[0] == 200  # who was sent here before is answered
        assert started.wait(20) == 0


def test_it_stops_cleanly_while_it_loads() -> None:
    for extra, said in (([], "stopped before"), (["--log-format", "json"], '{"level": "info", "message": "stopped')):
        started = subprocess.Popen(
            [sys.executable, "-c", LOADING, "serve", "slow.countless", "--port", "0", *extra],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert started.stdout is not None
        assert started.stdout.readline() == "loading\n"
        started.terminate()
        _, errors = started.communicate(timeout=20)
        assert (started.returncode, errors.startswith(said)) == (0, True)


def test_clients_that_do_nothing_do_not_keep_it(model: Path) -> None:
    """An idle connection, half a head, half a body, and a client that does not read its answer."""
    with process("countless.cli.main", "serve", model, "--port", 0, "--timeout", "1s") as (started, port):
        body = json.dumps({"count": 10_000})
        head = "POST /v1/models/people/sample HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        sent = [
            "",
            "GET / HT",
            f"{head}Content-Length: 99\r\n\r\n{{",
            f"{head}Content-Length: {len(body)}\r\n\r\n{body}",
        ]
        with contextlib.ExitStack() as stack:
            for text in sent:
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                connection.connect(("127.0.0.1", port))
                connection.sendall(text.encode())
            assert ask(port)[0] == 200
            started.terminate()
            assert started.wait(20) == 0
            with pytest.raises(ConnectionRefusedError):
                ask(port)
