"""The baseline of a full scan, which is the exact count."""

from __future__ import annotations

import glob
import os
import time
from pathlib import Path
from typing import Any

from countless.data.sources.location import locate
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate
from countless.evaluation.baselines.base import Baseline, value_bytes


class Scan(Baseline):
    """DuckDB's exact count, from a scan of the table's own file. Its size is that of the file."""

    method = "scan"
    slow = True

    def __init__(self, table: Any) -> None:
        self._source = Source.open(table)
        self.rows = self._source.count()
        is_path = isinstance(table, str | os.PathLike) and locate(os.fspath(table)) is None
        self.bytes = _file_bytes(os.fspath(table)) if is_path else value_bytes(self._source)

    def estimate(self, where: str) -> Estimate:
        """The true count."""
        started = time.perf_counter()
        (rows,) = self._source.counts([where])
        return Estimate(
            where=where,
            rows=rows,
            selectivity=rows / self.rows if self.rows else 0.0,
            low=rows,
            high=rows,
            level=1.0,
            method=self.method,
            exact=True,
            ms=(time.perf_counter() - started) * 1e3,
        )


def _file_bytes(path: str) -> int:
    """The size of the file, or of the files that a pattern matches."""
    files = [path] if Path(path).exists() else glob.glob(path, recursive=True)
    return sum(Path(file).stat().st_size for file in files)
