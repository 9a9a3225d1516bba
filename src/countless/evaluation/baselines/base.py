"""The base classes of baselines: same clauses, same type of answer, and a report of their size."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.schema import Column
from countless.data.columns.types import TEXT, quote_identifier, stored_type
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import LEVEL
from countless.query.compile import Compiler
from countless.query.predicate import Where
from countless.region import Region

WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4, "UINTEGER": 4}
WIDTHS |= {"FLOAT": 4, "DATE": 4, "HUGEINT": 16, "UHUGEINT": 16}
WIDTH = 8  # bytes of a value of any other type that is not a string


class Baseline(ABC):
    """A way to count that needs the table, or has to look at it first.

    ``rows`` has the table, and ``bytes`` are what is kept to answer. A ``slow`` one is asked fewer questions.
    """

    method: str
    rows: int
    bytes: int
    slow = False

    @abstractmethod
    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""

    def close(self) -> None:  # noqa: B027  most hold nothing open
        """Close connections and servers."""


class EncodedBaseline(Baseline):
    """A baseline that reads clauses as the model does, and knows the encoded table."""

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


def stored_bytes(column: Column) -> NDArray[np.int64]:
    """What each value of a column takes: this many bytes for a number, and as many as it has for a string.

    >>> stored_bytes(Column("c", "VARCHAR", ("a", "four"), True)), stored_bytes(Column("n", "INTEGER", ("1",), False))
    (array([1, 4]), array([4]))
    """
    width = WIDTHS.get(column.type, WIDTH)
    return np.array([len(value.encode()) if column.type == TEXT else width for value in column.values], dtype=np.int64)


def value_bytes(source: Source) -> int:
    """The values of a table as they are in memory: this many bytes for a number, and as many as it has for a string.

    >>> import duckdb
    >>> value_bytes(Source.open(duckdb.sql("SELECT range::INTEGER AS n, 'four' AS t FROM range(10)")))
    80
    """
    sizes = []
    for name, kind in source.columns():
        column = quote_identifier(name)
        if stored_type(kind) in (TEXT, None):
            sizes.append(f"coalesce(sum(strlen(CAST({column} AS VARCHAR))), 0)")
        else:
            sizes.append(f"count(*) * {WIDTHS.get(kind, WIDTH)}")
    return int(source.rows(f"SELECT {' + '.join(sizes)} FROM {source.table}")[0][0])
