"""The sandbox's child process: DuckDB that runs users' SQL.

A call inside DuckDB cannot be interrupted, but a process can be ended. This one ends itself when a statement takes too
long, and cannot allocate more memory than its limit. The file runs alone, without the rest of the package. Requests and
replies are lines of JSON.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import importlib
import json
import resource
import signal
import sys
import uuid
from collections.abc import Iterator
from typing import Any

MOST_REPLIED = 64_000_000  # characters
SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET threads = 1",
    "SET memory_limit = '1GB'",
    "SET temp_directory = ''",
    "SET max_expression_depth = 250",  # planning time grows faster than the depth
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def main() -> None:
    """Answer requests, one after another, until the input ends."""
    start: dict[str, Any] = json.loads(sys.stdin.readline())
    sys.path[:] = start["path"]
    _limit_memory(start["bytes"])
    connection = _duckdb_module().connect(":memory:")
    for setting in SETTINGS:
        connection.execute(setting)
    for line in sys.stdin:
        request = json.loads(line)
        replies: list[str] = []
        for sql, parameters in request["statements"]:
            with _time_limit(request["seconds"]):
                reply, is_error = _reply(connection, sql, parameters)
            replies.append(reply)
            if is_error:
                break
        sys.stdout.write(f"[{', '.join(replies)}]\n")
        sys.stdout.flush()


def _duckdb_module() -> Any:
    """DuckDB's extension alone, which loads several times as fast as the package around it."""
    try:
        return importlib.import_module("_duckdb")
    except ImportError:
        return importlib.import_module("duckdb")


def _reply(connection: Any, sql: str, parameters: Any) -> tuple[str, bool]:
    """The reply to a statement, and whether it is an error."""
    try:
        reply = json.dumps({"rows": connection.execute(sql, parameters).fetchall()}, default=encode)
        if len(reply) > MOST_REPLIED:
            raise MemoryError
        return reply, False
    except MemoryError:
        return json.dumps({"error": "OutOfMemoryException", "message": "out of memory"}), True
    except Exception as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)}), True


def encode(value: Any) -> dict[str, Any]:
    """A value of a type that JSON does not have, under the name of its type."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return {f"${type(value).__name__}": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return {f"${type(value).__name__}": str(value)}
    return {"$str": str(value)}


def _limit_memory(most_bytes: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End the process if the block takes longer, whatever it does."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # without a handler, the alarm ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time, so that a busy machine does not matter
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
