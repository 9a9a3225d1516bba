"""Where rows come from: files that DuckDB scans, frames it reads in place, or one of its relations."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import duckdb
from numpy.typing import NDArray

from countless.data.types import quote_identifier
from countless.errors import SourceError

Result = TypeVar("Result")

READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".csv.gz": "read_csv",
    ".tsv.gz": "read_csv",
    ".csv.zst": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".txt": "read_csv",
}
# One string per line, whatever is in it: neither quotes nor commas mean anything. An empty line is an empty string.
LINES = "header = false, delim = '\x01', quote = '', escape = '', columns = {'line': 'VARCHAR'}, auto_detect = false"


class Source:
    """A table that can be queried in SQL under the name :attr:`table`, without being copied.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT range AS n FROM range(3)"))
    >>> source.rows(f"SELECT sum(n) FROM {source.table}")
    [(3,)]
    """

    def __init__(
        self, name: str, connection: duckdb.DuckDBPyConnection | None, relation: duckdb.DuckDBPyRelation | None
    ) -> None:
        self.name = name
        self.table = quote_identifier(name)
        self._connection = connection
        self._relation = relation

    @classmethod
    def open(cls, source: Any) -> Source:
        """A path or glob, a pandas, polars or Arrow table, or a DuckDB relation."""
        if isinstance(source, Source):
            return source
        name = f"countless_{uuid4().hex[:12]}"
        if isinstance(source, duckdb.DuckDBPyRelation):
            return cls(name, None, source)
        connection = connect()
        if isinstance(source, str | os.PathLike):
            scan = _scan(os.fspath(source))
            try:
                connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS SELECT * FROM {scan}")
            except duckdb.Error as error:
                raise SourceError(f"cannot read {os.fspath(source)}: {first_line(error)}") from None
        else:
            try:
                connection.register(name, source)
            except (duckdb.Error, TypeError, RuntimeError):
                raise SourceError(
                    f"cannot read an object of type {type(source).__name__} as a table: "
                    "give a path, a pandas, polars or Arrow table, or a DuckDB relation"
                ) from None
        return cls(name, connection, None)

    def run(self, sql: str) -> None:
        """Run a statement that returns nothing."""
        self._query(sql, lambda result: None)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement in which :attr:`table` may be named."""
        return self._query(sql, lambda result: result.fetchall())

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        """The same by columns, each a NumPy array (a masked one where there are NULLs)."""
        return self._query(sql, lambda result: result.fetchnumpy())

    def count(self) -> int:
        """The number of rows."""
        return int(self.rows(f"SELECT count(*) FROM {self.table}")[0][0])

    def sampled(self, size: int, seed: int) -> Source:
        """A random sample of so many rows, kept in a table of its own."""
        name = f"countless_{uuid4().hex[:12]}"
        place = quote_identifier(f"{self.name}_place")
        order = f"hash({place} + {int(seed) * 1_000_003})"
        numbered = f"SELECT *, row_number() OVER () AS {place} FROM {self.table}"
        rows = f"SELECT * EXCLUDE ({place}) FROM ({numbered}) ORDER BY {order} LIMIT {int(size)}"
        if self._connection is None:
            assert self._relation is not None
            return Source(name, None, self._relation.query(self.name, rows))
        self.run(f"CREATE TEMP TABLE {quote_identifier(name)} AS {rows}")
        return Source(name, self._connection, None)

    def _query(self, sql: str, fetch: Callable[[Any], Result]) -> Result:
        try:
            if self._connection is not None:
                return fetch(self._connection.execute(sql))
            assert self._relation is not None
            return fetch(self._relation.query(self.name, sql))
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            raise SourceError(f"DuckDB could not read the table: {first_line(error)}") from None
        except RuntimeError as error:  # so it is told when Ctrl-C comes between two steps of a query
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None

    def columns(self) -> list[tuple[str, str]]:
        """Name and DuckDB type of every column."""
        return [(str(name), str(kind)) for name, kind, *_ in self.rows(f"DESCRIBE SELECT * FROM {self.table}")]

    def counts(self, clauses: Sequence[str], batch: int = 64) -> list[int]:
        """How many rows match each WHERE clause, exactly: a scan answers ``batch`` of them."""
        counts: list[int] = []
        for first in range(0, len(clauses), batch):
            filters = ", ".join(f"count(*) FILTER (WHERE {clause}\n)" for clause in clauses[first : first + batch])
            counts.extend(int(count) for count in self.rows(f"SELECT {filters} FROM {self.table}")[0])
        return counts


def connect() -> duckdb.DuckDBPyConnection:
    """A private in-memory DuckDB whose time zone is UTC, whatever the machine's."""
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def first_line(error: BaseException) -> str:
    """The first line of a message: DuckDB's go on with a picture of the statement, which the user did not write."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _scan(path: str) -> str:
    """DuckDB's table function for the file or files at ``path``."""
    if not glob.has_magic(path) and not Path(path).exists():
        raise SourceError(f"no such file: {path}")
    if glob.has_magic(path) and not Path(path).exists() and not glob.glob(path, recursive=True):
        raise SourceError(f"no file matches {path}")
    if Path(path).is_dir():
        raise SourceError(f"{path} is a directory: give a file, or a glob such as {path.rstrip('/')}/*.parquet")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    reader = READERS.get("".join(suffixes[-2:])) or READERS.get("".join(suffixes[-1:]))
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise SourceError(f"{path}: the ending does not say what it is; known endings are {known}")
    quoted = "'" + path.replace("'", "''") + "'"
    if suffixes[-1] == ".txt":
        return f"(SELECT coalesce(line, '') AS line FROM read_csv({quoted}, {LINES}, null_padding = true))"
    return f"{reader}({quoted})"
