"""DuckDB connections with the settings that the whole package uses."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import takewhile
from uuid import uuid4

import duckdb

from countless.data.sources.file_formats import quote_path

TO_UTF8 = (
    "Say what it is with --csv encoding=latin-1 or utf-16, or convert it, most often from CP1252: "
    "iconv -f CP1252 -t UTF-8 old.csv > new.csv. "
    "If it is UTF-8 with damaged bytes, drop them: iconv -c -f UTF-8 -t UTF-8 old.csv > new.csv"
)
AFTER_REASON = re.compile(
    r"Possible (?:[Ss]olution|fix)|Column .* is being converted|  file = "
)  # in a message about a CSV file


def connect() -> duckdb.DuckDBPyConnection:
    """A private in-memory DuckDB whose time zone is UTC, whatever the machine's.

    It has as many threads as ``COUNTLESS_THREADS`` says, or as there are cores.
    """
    threads = os.environ.get("COUNTLESS_THREADS", "")
    connection = duckdb.connect(":memory:", config={"threads": max(1, int(threads))} if threads.isdecimal() else {})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = true")  # a watch asks for it; nothing is printed
    connection.execute("SET enable_progress_bar_print = false")
    return connection


@dataclass(frozen=True)
class Limit:
    """How many bytes DuckDB may take, and the folder that it uses beyond."""

    memory: int
    spill: str

    def keep(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let a connection keep to it."""
        connection.execute(f"SET memory_limit = '{self.memory // 10**6}MB'")
        connection.execute(f"SET temp_directory = {quote_path(self.spill)}")


def first_line(error: BaseException) -> str:
    """The first line of a message: DuckDB's continue with a picture of the statement, which the user did not write.

    What is wrong in a line of a CSV file comes only after that line, which may itself have line breaks in its values.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = lines[0]
    if "CSV Error on Line" in line:
        told = list(takewhile(lambda other: not AFTER_REASON.match(other), lines[1:]))
        line = ": ".join([line, *[other for other in told if other.strip()][-1:]])
    return f"{line} {TO_UTF8}" if "not utf-8" in line else line


def new_name() -> str:
    """A name for a table that no other has."""
    return f"countless_{uuid4().hex[:12]}"
