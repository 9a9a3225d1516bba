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

    ``COUNTLESS_THREADS`` sets the number of threads; by default it is that of the cores.
    """
    threads = os.environ.get("COUNTLESS_THREADS", "")
    connection = duckdb.connect(":memory:", config={"threads": max(1, int(threads))} if threads.isdecimal() else {})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = true")  # so that query_progress() works; nothing is printed
    connection.execute("SET enable_progress_bar_print = false")
    return connection


@dataclass(frozen=True)
class Limit:
    """The bytes of memory that DuckDB may use, and the folder to which it spills."""

    memory: int
    spill: str

    def apply(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set the limits of a connection."""
        connection.execute(f"SET memory_limit = '{self.memory // 10**6}MB'")
        connection.execute(f"SET temp_directory = {quote_path(self.spill)}")


def first_line(error: BaseException) -> str:
    """The first line of an error's message: in DuckDB's the statement follows, which the user did not write.

    About a line of a CSV file, the reason comes after that line, whose values may have line breaks themselves.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = lines[0]
    if "CSV Error on Line" in line:
        before_hints = list(takewhile(lambda text: not AFTER_REASON.match(text), lines[1:]))
        line = ": ".join([line, *[text for text in before_hints if text.strip()][-1:]])
    return f"{line} {TO_UTF8}" if "not utf-8" in line else line


def new_name() -> str:
    """A new, unique name for a table."""
    return f"countless_{uuid4().hex[:12]}"
