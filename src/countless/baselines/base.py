"""What the baselines share: they read the same clauses, and answer with the same type."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from countless.data.table import Table
from countless.errors import UnsupportedQueryError
from countless.estimator.calibration import LEVEL
from countless.estimator.estimate import Estimate
from countless.query.compile import Compiler
from countless.query.predicate import Where
from countless.region import Region


def answered(method: str, where: str, total: int, shares: tuple[float, float, float], started: float) -> Estimate:
    """A baseline's estimate: ``shares`` are the selectivity and the bounds of its error bar."""
    selectivity, low, high = shares
    return Estimate(
        where=where,
        rows=selectivity * total,
        selectivity=selectivity,
        low=low * total,
        high=high * total,
        level=LEVEL,
        method=method,
        exact=False,
        ms=(time.perf_counter() - started) * 1e3,
    )


class Baseline(ABC):
    """An estimator that needs the table, or a part of it."""

    method: str

    def __init__(self, table: Table) -> None:
        self.rows = table.rows
        self._compiler = Compiler(table.schema)

    def estimate(self, where: Where) -> Estimate:
        """The number of rows that ``where`` keeps."""
        started = time.perf_counter()
        question = self._compiler.compile(where)
        if any(box.texts for box in question.region.boxes):
            raise UnsupportedQueryError(f"the method {self.method!r} is not for text columns: ask about the others")
        return answered(self.method, question.where, self.rows, self._answer(question.region), started)

    @abstractmethod
    def _answer(self, region: Region) -> tuple[float, float, float]:
        """Selectivity, and the bounds of its error bar."""
