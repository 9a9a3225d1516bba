"""The baseline of DuckDB's own cardinality estimate."""

from __future__ import annotations

import json
import time
from typing import Any

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate
from countless.evaluation.baselines.base import Baseline, answered


class DuckDbGuess(Baseline):
    """The number of rows that DuckDB's optimizer expects a filter to keep. It has no error bar.

    DuckDB stores the least and the greatest value of every column, and an estimate of its number of values.
    """

    method = "duckdb-guess"

    def __init__(self, table: Any) -> None:
        source = Source.open(table)
        self.rows = source.count()
        self._table = source.sampled(self.rows, 0)  # a table in DuckDB, which has statistics
        stats_calls = ", ".join(f"stats({quote_identifier(name)})" for name, _ in self._table.columns())
        stats_rows = self._table.rows(f"SELECT {stats_calls} FROM {self._table.table} LIMIT 1")
        self.bytes = sum(len(str(statistics).encode()) for row in stats_rows for statistics in row)

    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""
        started = time.perf_counter()
        explained = self._table.rows(f"EXPLAIN (FORMAT JSON) SELECT * FROM {self._table.table} WHERE {where}\n")
        share = min(1.0, _expected(json.loads(explained[0][1])) / self.rows)
        return answered(self.method, where, self.rows, (share, 0.0, 1.0), started)


def _expected(plan: Any) -> float:
    """The estimate at the top of a plan, or at the topmost operator that has one."""
    for operator in plan:
        cardinality = operator.get("extra_info", {}).get("Estimated Cardinality")
        return float(cardinality) if cardinality is not None else _expected(operator["children"])
    return 0.0
