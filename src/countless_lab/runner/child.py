"""The process of one job of a sweep: ``python child.py FD``, where FD is its connection to the sweep.

It starts fast: until the job is there, nothing is imported but the standard library. When the sweep ends, however it
ends, the connection breaks, and so does the job.
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
    """The sweep wants no more of this job."""


class _Parent:
    """The sweep, at the other end of the connection."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._connection: Connection[Any, Any] = Connection(descriptor)
        self._lock = threading.Lock()

    def hear(self) -> bytes:
        return self._connection.recv_bytes()

    def tell(self, message: bytes) -> None:
        try:
            with self._lock:
                self._connection.send_bytes(message)
        except OSError:
            pass  # the sweep is gone, and so is this process soon

    def say(self, line: str) -> None:
        self.tell(json.dumps({"say": str(line)}).encode())

    def watch(self) -> None:
        """Wait for the sweep to go, then go too: tidily if that is possible in time."""
        try:
            self.hear()
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(GRACE)
            os.killpg(os.getpid(), signal.SIGKILL)  # this process leads a group of its own


def main() -> None:
    """Run the job that comes through the connection, and send back its result, or why there is none."""
    signal.signal(signal.SIGTERM, _stop)
    parent = _Parent(int(sys.argv[1]))
    try:
        sys.path[:] = json.loads(parent.hear())
        order = parent.hear()
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
    parent.tell(message.encode())


def _reason(error: BaseException) -> str:
    """What went wrong, in one line."""
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
