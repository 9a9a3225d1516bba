"""Generated tables: correlated, skewed columns with exact numbers of distinct values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from countless.data.sources.source import connect, first_line
from countless.errors import DataError

CHUNK = 1 << 18  # rows that are in memory at a time
FACTORS = 5  # latent numbers that the columns of a row share
LOADINGS = (0.9, 0.6, 0.8, 0.4, 0.7, 0.5, 0.85)  # weight of a column's factor; the rest is independent noise
SKEW = 3.0  # small codes are frequent, large ones rare
LOGISTIC = 1.702  # with this slope the logistic curve is close to the normal distribution's

# The numbers of values of ten small columns, which wider tables repeat.
SMALL = (2, 12, 5, 40, 3, 120, 8, 20, 250, 70)

Columns = dict[str, NDArray[np.int32]]


def small_columns(count: int) -> tuple[int, ...]:
    """The numbers of values of ``count`` small columns.

    >>> small_columns(12)
    (2, 12, 5, 40, 3, 120, 8, 20, 250, 70, 2, 12)
    """
    return tuple(SMALL[index % len(SMALL)] for index in range(count))


@dataclass(frozen=True)
class Synthetic:
    """A table of integers: column ``c<i>`` has exactly the values 0 to ``distinct[i] - 1``.

    Every row draws a few factors, and a column follows one of them, so that columns with the same factor depend on
    each other. Rows spread evenly over the table step through a column's values instead: that is how each occurs,
    however rare the skew makes it. Equal descriptions make equal tables.
    """

    rows: int
    distinct: tuple[int, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.distinct or min(self.distinct) < 1:
            raise DataError("a generated table has at least one column, of at least one value")
        if self.rows < max(self.distinct):
            raise DataError(
                f"{self.rows:,} rows cannot hold {max(self.distinct):,} distinct values: "
                "generate more rows, or fewer values"
            )

    def write(self, folder: Path) -> str:
        """Write the table in Parquet files under ``folder``, chunk by chunk; return the glob that reads them."""
        connection = connect()
        try:
            for number, columns in enumerate(self._chunks()):
                connection.register("chunk", columns)
                path = str(folder / f"{number:05}.parquet").replace("'", "''")
                connection.execute(f"COPY chunk TO '{path}' (FORMAT parquet)")
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            raise DataError(f"cannot write a generated table: {first_line(error)}; free some space") from None
        return str(folder / "*.parquet")

    def first_rows(self) -> Columns:
        """Rows to take literals from: the first ones, which are as random as any others."""
        return next(self._chunks())

    def _chunks(self) -> Iterator[Columns]:
        for number, first in enumerate(range(0, self.rows, CHUNK)):
            yield self._columns(np.arange(first, min(first + CHUNK, self.rows)), number)

    def _columns(self, row_numbers: NDArray[np.int64], number: int) -> Columns:
        """The rows at ``row_numbers``; each chunk has random numbers of its own."""
        rng = np.random.default_rng([self.seed, number])
        factors = rng.standard_normal((FACTORS, len(row_numbers)))
        columns = {}
        for index, size in enumerate(self.distinct):
            loading = LOADINGS[index % len(LOADINGS)]
            noise = math.sqrt(1.0 - loading**2) * rng.standard_normal(len(row_numbers))
            level = 1.0 / (1.0 + np.exp(-LOGISTIC * (loading * factors[index % FACTORS] + noise)))
            codes = np.minimum(size * level**SKEW, size - 1).astype(np.int32)
            columns[f"c{index}"] = self._with_every_value(codes, row_numbers, size)
        return columns

    def _with_every_value(
        self, codes: NDArray[np.int32], row_numbers: NDArray[np.int64], size: int
    ) -> NDArray[np.int32]:
        """The codes, but one row in every ``rows // size`` takes the next value of a fixed permutation."""
        index, offset = np.divmod(row_numbers, self.rows // size)
        stepping = (offset == 0) & (index < size)
        codes[stepping] = index[stepping] * _coprime(size) % size
        return codes


def _coprime(size: int) -> int:
    """A step that visits every one of ``size`` values, far apart from one to the next."""
    step = max(1, round(size * 0.618))
    while math.gcd(step, size) > 1:
        step += 1
    return step
