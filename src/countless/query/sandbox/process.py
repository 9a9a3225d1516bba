"""The sandbox's parent side: starts DuckDB processes for users' SQL and limits their memory and time.

All of a user's SQL is run here. A :class:`Sandbox` is one such process. It is borrowed for some statements, keeps its
tables for the next borrower, and is replaced after it has ended.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import os
import select
import subprocess
import sys
import threading
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from countless.cancellation import check_cancelled
from countless.errors import QueryTooLargeError
from countless.query.answer_clock import one_time_work
from countless.query.sandbox import child_process
from countless.query.sandbox.functions import check_functions

SECONDS = 10.0  # for one statement
MOST_BYTES = 2 * 1024**3
MOST_TABLES = 100  # cached by a process
POLL = 0.05  # seconds between two checks for cancellation
TOO_MUCH = f"this takes DuckDB more than {SECONDS:g} s, or more memory than it may use: ask for something simpler"
TOO_DEEP = "an expression has too many terms: compute constants beforehand, and write their values"
DECODERS: dict[str, Callable[[Any], Any]] = {
    "$date": datetime.date.fromisoformat,
    "$datetime": datetime.datetime.fromisoformat,
    "$time": datetime.time.fromisoformat,
    "$timedelta": lambda parts: datetime.timedelta(*parts),
    "$bytes": bytes.fromhex,
    "$Decimal": decimal.Decimal,
    "$UUID": uuid.UUID,
    "$str": str,
}

_numbers = itertools.count()


def new_owner() -> int:
    """The number of a new owner of tables in sandboxes; the names of its tables contain it."""
    return next(_numbers)


class Sandbox:
    """A process that runs one statement at a time. Made by :func:`borrowed`."""

    def __init__(self, seconds: float = SECONDS, most_bytes: int = MOST_BYTES) -> None:
        self._seconds = seconds
        self._tables: OrderedDict[str, int] = OrderedDict()  # name -> owner, least recently used first
        with one_time_work():
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(child_process.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="ascii",
                start_new_session=True,  # Ctrl-C does not reach the child
            )
            self._end = weakref.finalize(self, _end, self._process, os.getpid())
            self._send({"path": sys.path, "bytes": most_bytes})
            self.run("SELECT 1")  # until it has loaded DuckDB

    @property
    def usable(self) -> bool:
        """Whether it can run another statement."""
        return self._end.alive and self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._end()

    def run_user_sql(self, sql: str, user_sql: str | None = None, parameters: Any = None) -> list[Sequence[Any]]:
        """The rows of a statement that a user wrote, or of which the user wrote the part ``user_sql``."""
        check_functions(sql if user_sql is None else user_sql)
        return self.run(sql, parameters)

    def run(self, sql: str, parameters: Any = None) -> list[Sequence[Any]]:
        """The rows of a statement. DuckDB's errors are raised unchanged, except those about limits."""
        return self.run_in_turn([(sql, parameters)])[0]

    def run_in_turn(self, statements: Sequence[tuple[str, Any]]) -> list[list[Sequence[Any]]]:
        """The rows of several statements with their parameters, sent together. The first error is raised.

        Sending a message takes longer than most statements do.
        """
        try:
            self._send({"statements": statements, "seconds": self._seconds})
            replies = self._receive()
        except BaseException:  # Ctrl-C, or cancelled: the next caller would read this reply
            self.close()
            raise
        if "error" in replies[-1]:
            raise self._error(replies[-1]["error"], replies[-1]["message"])
        return [reply["rows"] for reply in replies]

    def _error(self, name: str, message: str) -> Exception:
        """DuckDB's error of this name."""
        kind: Any = getattr(duckdb, name, None)
        if kind is duckdb.OutOfMemoryException:
            self.close()  # what it still holds is unknown
            return _too_much()
        if "max_expression_depth" in message:
            return QueryTooLargeError(TOO_DEEP)
        is_error = isinstance(kind, type) and issubclass(kind, duckdb.Error)
        error: Exception = (kind if is_error else duckdb.InvalidInputException)(message)
        return error

    def has(self, name: str, owner: int) -> bool:
        """Whether there is a table ``name`` of this ``owner``; marks it as used."""
        if self._tables.get(name) != owner:
            return False
        self._tables.move_to_end(name)
        return True

    def table(self, name: str, owner: int, create: str, parameters: Any = None) -> None:
        """Create the table ``name`` by the statement ``create``; drop the least recently used ones of too many."""
        self._tables.pop(name, None)
        self.run(create, parameters)
        self._tables[name] = owner
        while len(self._tables) > MOST_TABLES:
            self.run(f"DROP TABLE IF EXISTS {self._tables.popitem(last=False)[0]}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: there is no reply
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _receive(self) -> list[dict[str, Any]]:
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], POLL)[0]:
            check_cancelled()
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise _too_much()
        replies: list[dict[str, Any]] = json.loads(line, object_hook=_decoded)
        return replies


class _Pool:
    """The idle processes. There can be as many borrowers as processors."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._idle: list[Sandbox] = []

    @contextmanager
    def borrowed(self) -> Iterator[Sandbox]:
        """A process for exclusive use."""
        while not self._slots.acquire(timeout=POLL):
            check_cancelled()
        try:
            sandbox = self._take()
            try:
                yield sandbox
            finally:
                if sandbox.usable:
                    self._idle.append(sandbox)
        finally:
            self._slots.release()

    def _take(self) -> Sandbox:
        with suppress(IndexError):
            while not (sandbox := self._idle.pop()).usable:
                sandbox.close()  # its process has ended
            return sandbox
        return Sandbox()


_pool = _Pool()


def borrowed() -> AbstractContextManager[Sandbox]:
    """A sandbox for some statements, as a context. No other thread uses it at the same time.

    >>> with borrowed() as sandbox:
    ...     sandbox.run_user_sql("SELECT upper('a') || 1")
    [['A1']]
    """
    global _pool
    if _pool.pid != os.getpid():  # after a fork the processes belong to the parent
        _pool = _Pool()
    return _pool.borrowed()


def _too_much() -> QueryTooLargeError:
    error = QueryTooLargeError(TOO_MUCH)
    error.is_final = True
    return error


def _decoded(fields: dict[str, Any]) -> Any:
    if len(fields) == 1:
        ((name, value),) = fields.items()
        if name in DECODERS:
            return DECODERS[name](value)
    return fields


def _end(process: subprocess.Popen[str], pid: int) -> None:
    """End the process and close its pipes; not from a fork, since the parent may still use it."""
    if pid != os.getpid():
        return
    process.kill()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(OSError):
            pipe.close()
    process.wait()
