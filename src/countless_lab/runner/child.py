"""The process of one job of a sweep: ``python child.py FD``, where FD is its connection to the sweep.

It starts fast: until the job arrives, it imports only the standard library. When the sweep ends in any way, the
connection breaks, and the job ends too.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NoReturn

GRACE = 5.0  # seconds to tidy up in


class _Stopped(SystemExit):
    """The sweep has stopped this job."""


class _Parent:
    """The sweep, at the other end of the connection."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._connection: Connection[Any, Any] = Connection(descriptor)
        self._lock = threading.Lock()

    def receive(self) -> bytes:
        return self._connection.recv_bytes()

    def send(self, message: bytes) -> None:
        try:
            with self._lock:
                self._connection.send_bytes(message)
        except OSError:
            pass  # the sweep has ended, and this process ends soon

    def say(self, line: str) -> None:
        self.send(json.dumps({"say": str(line)}).encode())

    def watch(self) -> None:
        """Wait until the sweep ends, then end this process: tidily if it takes no longer than ``GRACE``."""
        try:
            self.receive()
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(GRACE)
            os.killpg(os.getpid(), signal.SIGKILL)  # this process leads a group of its own


def main() -> None:
    """Run the job that the sweep sends, and send back its result or its error."""
    signal.signal(signal.SIGTERM, _stop)
    parent = _Parent(int(sys.argv[1]))
    try:
        sys.path[:] = json.loads(parent.receive())
        order = parent.receive()
    except (EOFError, OSError):
        return
    threading.Thread(target=parent.watch, daemon=True).start()
    started = time.perf_counter()
    try:
        job, folder = pickle.loads(order)
        result = job.run(folder, parent.say)
        message = json.dumps({"result": result, "seconds": time.perf_counter() - started})
    except _Stopped:
        raise
    except BaseException as error:
        message = json.dumps({"error": _reason(error), "traceback": traceback.format_exc()})
    parent.send(message.encode())


def _reason(error: BaseException) -> str:
    """The message of an error, in one line."""
    lines = str(error).strip().splitlines()
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer workers, or a larger machine"
    errors = sys.modules.get("countless.errors")  # loaded, if the error is one of its own
    if errors is not None and isinstance(error, errors.CountlessError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stopped(128 + number)


if __name__ == "__main__":
    main()
