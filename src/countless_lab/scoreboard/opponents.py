"""Alternatives to a model: exact counts, samples of rows, and a scan of packed codes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
from sqlglot import exp

from countless.data.columns.types import quote_identifier
from countless.data.sources.file_formats import quote_path
from countless.estimator.answers.estimate import Estimate
from countless.query.parsing.parse import parse
from countless.workload import Query
from countless_lab.codes import PackedCodes, has_scan
from countless_lab.measurement.timer import timed
from countless_lab.scoreboard.answers import Answers

SAMPLE_ROWS = 100_000
SAMPLE_SEED = 11
TRIAL_ROWS = 50_000  # of the first stored sample; its bytes tell how many rows the wanted one has
NEAR_ENOUGH = 0.02  # of the bytes that a stored sample should have
TRIALS = 6
SCANS = 7  # of one question; the fastest counts, since one scan is too short to be timed


def without_interval(rows: float, method: str, exact: bool) -> Estimate:
    """The answer of a method that gives no interval."""
    return Estimate("", rows, 0.0, rows, rows, 1.0, method, exact, 0.0)


class DuckDBTable:
    """A table in DuckDB's memory, or in its file if ``in_memory`` is false, asked with one thread."""

    def __init__(self, path: Path, in_memory: bool = True) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        kind = "TABLE" if in_memory else "VIEW"
        self._connection.execute(f"CREATE {kind} t AS SELECT * FROM {quote_path(str(path))}")
        self.rows = self._scalar("SELECT count(*) FROM t")
        self._samples = 0
        self._connection.execute("SET threads = 1")

    def exact(self, where: str) -> Estimate:
        """The true count."""
        rows = self._scalar(f"SELECT count(*) FROM t WHERE {where}")
        return without_interval(rows, "duckdb", exact=True)

    def groups(self, column: str, where: str) -> dict[str | None, int]:
        """The true count of each value of a column."""
        name = quote_identifier(column)
        sql = f"SELECT {name}::VARCHAR, count(*) FROM t WHERE {where} GROUP BY {name}"
        return {value: int(rows) for value, rows in self._connection.execute(sql).fetchall()}

    def sample(self, rows: int) -> Callable[[str], Estimate]:
        """The answers of a uniform sample of this many rows, or of all if there are no more."""
        rows = max(1, min(rows, self.rows))
        self._samples += 1
        name = f"sample_{self._samples}"
        self._connection.execute(f"CREATE TABLE {name} AS {self._random_rows(rows)}")
        scale = self.rows / rows

        def estimate(where: str) -> Estimate:
            return without_interval(
                scale * self._scalar(f"SELECT count(*) FROM {name} WHERE {where}"), name, exact=False
            )

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
        by_size = [str(index + 1) for index in sorted(range(len(counts)), key=lambda index: counts[index])]
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
        columns = ", ".join(map(quote_identifier, names))
        return self._connection.execute(f"SELECT {columns} FROM t").to_arrow_table()

    def _scalar(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchall()[0][0])


def scan_answers(table: DuckDBTable, queries: Sequence[Query], seconds: float) -> tuple[Answers, int] | None:
    """Answers by a scan of codes, and the bytes of the codes; None if the scan is not compiled.

    Questions that a scan of codes cannot answer, such as LIKE on text, are left out. After this many seconds no other
    question is begun.
    """
    if not has_scan():
        return None
    names = sorted({column.name for query in queries for column in parse(query.where).find_all(exp.Column)})
    codes = PackedCodes(table.arrow(names))
    answers = Answers("scan")
    deadline = time.monotonic() + seconds
    for number, query in enumerate(queries):
        scan = codes.prepare(query.where)
        if scan is None or time.monotonic() > deadline:
            continue
        rows, ms = min((timed(scan) for _ in range(SCANS)), key=lambda measured: measured[1])
        if rows != query.rows:
            raise AssertionError(f"the scan found {rows} rows instead of {query.rows}")
        answers.add(number, without_interval(rows, "scan", exact=True), ms, refused=False)
    return answers, codes.bytes
