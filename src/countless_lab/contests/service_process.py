"""A service in a process of its own on this machine, for experiments: its port, its log, its memory."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from countless.errors import CountlessError
from countless_lab.measurement.memory import held_memory

HOST = "127.0.0.1"
START = 120.0  # seconds that a service may take to start
GRACE = 60.0  # seconds that it may take to stop


@dataclass(frozen=True)
class ServiceProcess:
    """A running service."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def memory(self) -> int:
        """Its memory now, in bytes."""
        return held_memory(self.process.pid)

    def tracebacks(self) -> int:
        """How many bugs it has logged."""
        return self.log.read_text(encoding="utf-8", errors="replace").count("Traceback (most recent call last)")

    def metrics(self) -> dict[str, float]:
        """Its Prometheus metrics, by name and labels."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        finally:
            connection.close()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}


@contextmanager
def running_service(arguments: Sequence[str], log: Path) -> Iterator[ServiceProcess]:
    """Run ``countless serve`` with these arguments at a free port inside this block."""
    command = [sys.executable, "-m", "countless.cli.main", "serve", *arguments, "--host", HOST, "--port", "0"]
    with open(log, "wb") as written:
        process = subprocess.Popen(command, stderr=written, start_new_session=True)
    try:
        yield ServiceProcess(process, _port(process, log), log)
    finally:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + START
    while time.monotonic() < end:
        log_text = log.read_text(encoding="utf-8", errors="replace")
        if address := re.search(r"serving at http://.*:(\d+)/\n", log_text):
            return int(address[1])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise CountlessError(f"the service did not start: {log_text.strip().removeprefix('error: ')}")
