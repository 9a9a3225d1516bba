"""What a user could do instead: count exactly, or keep a sample."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from countless.data.sources.file_formats import quote_path
from countless.estimator.answers.estimate import Estimate

SAMPLE_ROWS = 100_000
SAMPLE_SEED = 11
TRIAL_ROWS = 50_000  # of the first stored sample, from which the size of a larger one is guessed
NEAR_ENOUGH = 0.02  # of the bytes that a stored sample should have
TRIALS = 6


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
        self._connection.execute(f"CREATE TABLE {name} AS {self._random_rows(rows)}")
        scale = self.rows / rows

        def estimate(where: str) -> Estimate:
            found = scale * self._one(f"SELECT count(*) FROM {name} WHERE {where}")
            return Estimate(where, found, 0.0, found, found, 1.0, name, False, 0.0)

        return estimate

    def rows_of_bytes(self, size: int) -> int:
        """How many random rows make a Parquet file of about ``size`` bytes; all rows if they take no more."""
        rows = min(TRIAL_ROWS, self.rows)
        for _ in range(TRIALS):
            stored = self._stored_bytes(rows)
            if abs(stored - size) <= NEAR_ENOUGH * size or (rows == self.rows and stored <= size):
                break
            rows = max(1, min(self.rows, round(rows * size / stored)))
        return rows

    def _stored_bytes(self, rows: int) -> int:
        """Bytes of this many random rows as Parquet with zstd: sorted by few-valued columns first, or last."""
        counts = self._connection.execute("SELECT approx_count_distinct(COLUMNS(*)) FROM t").fetchall()[0]
        by_size = [str(place + 1) for place in sorted(range(len(counts)), key=lambda place: counts[place])]
        sizes = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sample.parquet"
            options = "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9)"
            for order in (by_size, by_size[::-1]):
                sample = f"SELECT * FROM ({self._random_rows(rows)}) ORDER BY {', '.join(order)}"
                self._connection.execute(f"COPY ({sample}) TO {quote_path(str(path))} {options}")
                sizes.append(path.stat().st_size)
        return min(sizes)

    def _random_rows(self, rows: int) -> str:
        """SQL for random rows: a larger number of them has all rows of a smaller one."""
        return f"SELECT * FROM t ORDER BY hash(rowid + {SAMPLE_SEED * 1_000_003}) LIMIT {rows}"

    def arrow(self, names: list[str]) -> object:
        """Some columns as an Arrow table."""
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        return self._connection.execute(f"SELECT {columns} FROM t").to_arrow_table()

    def _one(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchall()[0][0])
