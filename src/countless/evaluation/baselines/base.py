"""The base classes of baselines, which take the same clauses as a model and return the same type of estimate."""

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
WIDTH = 8  # bytes of a value of any other type except strings


class Baseline(ABC):
    """Another way to estimate counts, which scans the table or summarises it first.

    ``rows`` is the number of rows of the table, ``bytes`` the size of what the baseline stores. A ``slow`` baseline
    gets fewer questions.
    """

    method: str
    rows: int
    bytes: int
    slow = False

    @abstractmethod
    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""

    def close(self) -> None:  # noqa: B027  most have nothing to close
        """Close connections and servers."""


class EncodedBaseline(Baseline):
    """A baseline that compiles clauses as the model does, and has the encoded table."""

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
        """The selectivity and the bounds of its error bar."""


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
    """The bytes of each value of a column: the width of its type, or the length of a string.

    >>> stored_bytes(Column("c", "VARCHAR", ("a", "four"), True)), stored_bytes(Column("n", "INTEGER", ("1",), False))
    (array([1, 4]), array([4]))
    """
    width = WIDTHS.get(column.type, WIDTH)
    return np.array([len(value.encode()) if column.type == TEXT else width for value in column.values], dtype=np.int64)


def value_bytes(source: Source) -> int:
    """The bytes of a table's values in memory: the width of the type, or the lengths of strings.

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
