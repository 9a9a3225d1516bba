"""What a user could do instead: count exactly, or keep a sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb

from countless.data.sources.file_formats import quote_path
from countless.estimator.answers.estimate import Estimate

SAMPLE_ROWS = 100_000
SAMPLE_SEED = 11


class TableInMemory:
    """A table in DuckDB's memory, asked with one thread."""

    def __init__(self, path: Path) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute(f"CREATE TABLE t AS SELECT * FROM {quote_path(str(path))}")
        self.rows = self._one("SELECT count(*) FROM t")
        self._samples = 0
        self._connection.execute("SET threads = 1")

    def exact(self, where: str) -> Estimate:
        """The true count."""
        rows = self._one(f"SELECT count(*) FROM t WHERE {where}")
        return Estimate(where, rows, 0.0, rows, rows, 1.0, "duckdb", True, 0.0)

    def sample(self, rows: int) -> Callable[[str], Estimate]:
        """The answers of a uniform sample of this many rows, or of all if there are no more."""
        rows = max(1, min(rows, self.rows))
        self._samples += 1
        name = f"sample_{self._samples}"
        order = f"hash(rowid + {SAMPLE_SEED * 1_000_003})"
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM t ORDER BY {order} LIMIT {rows}")
        scale = self.rows / rows

        def estimate(where: str) -> Estimate:
            found = scale * self._one(f"SELECT count(*) FROM {name} WHERE {where}")
            return Estimate(where, found, 0.0, found, found, 1.0, name, False, 0.0)

        return estimate

    def arrow(self, names: list[str]) -> object:
        """Some columns as an Arrow table."""
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        return self._connection.execute(f"SELECT {columns} FROM t").to_arrow_table()

    def _one(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchall()[0][0])
