"""What a query optimizer expects without a model: DuckDB's own guess."""

from __future__ import annotations

import json
import time
from typing import Any

from countless.data.source import Source
from countless.estimator.calibration import LEVEL
from countless.estimator.estimate import Estimate


class DuckDbGuess:
    """The number of rows that DuckDB's optimizer expects a filter to keep. It has no error bar."""

    method = "duckdb-guess"

    def __init__(self, table: Any) -> None:
        source = Source.open(table)
        self.rows = source.count()
        self._table = source.sampled(self.rows, 0)  # a table of its own, of which it has statistics

    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""
        started = time.perf_counter()
        explained = self._table.rows(f"EXPLAIN (FORMAT JSON) SELECT * FROM {self._table.table} WHERE {where}\n")
        rows = min(float(self.rows), _expected(json.loads(explained[0][1])))
        return Estimate(
            where=where,
            rows=rows,
            selectivity=rows / self.rows,
            low=0.0,
            high=float(self.rows),
            level=LEVEL,
            method=self.method,
            exact=False,
            ms=(time.perf_counter() - started) * 1e3,
        )


def _expected(plan: Any) -> float:
    """The estimate at the top of a plan, or at the topmost operator that has one."""
    for operator in plan:
        told = operator.get("extra_info", {}).get("Estimated Cardinality")
        return float(told) if told is not None else _expected(operator["children"])
    return 0.0
