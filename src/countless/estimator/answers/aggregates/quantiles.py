"""Quantiles of a column from the row counts of its values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.types import DECIMAL, TIMES
from countless.estimator.answers.aggregates.aggregate_intervals import Bars
from countless.query.grids.scale import scale_of, written
from countless.query.select.selection import Aggregate

if TYPE_CHECKING:
    from countless.estimator.answers.aggregates.value_distributions import CellValues
    from countless.estimator.answers.distributions.values import Values

DISCRETE = "quantile_disc"


class Ranked:
    """The sorted values of one group: ``codes``, the ``rows`` of each, and the rounded sum of rows, ``count``.

    Rows are numbered from 0. A row has the value at its middle, because ``rows`` need not be whole numbers.

    >>> from countless.data.columns.schema import Column
    >>> from countless.estimator.answers.distributions.values import Values
    >>> values = Values(Column("n", "INTEGER", ("1", "3", "9"), has_null=False))
    >>> ranked = Ranked(values, np.array([0, 1, 2]), np.array([2.1, 1.2, 0.7]), 4)
    >>> ranked.quantile(Aggregate("median", 0, "0.5"), "DOUBLE")
    '2.0'
    """

    def __init__(self, values: Values | CellValues, codes: IntArray, rows: FloatArray, count: int) -> None:
        self.values = values
        self.codes = codes
        self.rows = rows
        self.count = count
        self._ends = np.cumsum(rows)

    def quantile(self, aggregate: Aggregate, kind: str) -> str | None:
        """The quantile as DuckDB prints it, if its type is ``kind``; None if there are no rows."""
        if not self.count:
            return None
        low, high, fraction = self._neighbors(aggregate)
        first = self._value(low)
        return first if low == high else self._between(first, self._value(high), fraction, kind)

    def bar(self, aggregate: Aggregate, kind: str, bars: Bars) -> tuple[str | None, str | None]:
        """The ends of the quantile's error bar: the quantiles at its share minus and plus the share's error."""
        if bars.certain or not self.count:
            exact = self.quantile(aggregate, kind)
            return exact, exact
        share = float(Fraction(aggregate.share))
        return self.ends(aggregate, bars.reach * self.share_error(share, bars))

    def share_error(self, share: float, bars: Bars) -> float:
        """The standard error of the ``share`` of rows that are below a quantile."""
        counted = ((self._ends - self.rows) / self._ends[-1] < share).astype(np.float64)
        return bars.of_share(self.rows, counted, share)

    def below(self, share: float, codes: IntArray) -> FloatArray:
        """Whether each of ``codes`` is below the quantile at ``share``: 0, 1, or a fraction for the quantile's code."""
        index, within = self._locate(share)
        is_below: FloatArray = np.where(codes == self.codes[index], within, codes < self.codes[index])
        return is_below

    def ends(self, aggregate: Aggregate, error: float) -> tuple[str | None, str | None]:
        """The quantiles at the share minus ``error`` and plus ``error``."""
        if not self.count:
            return None, None
        share = float(Fraction(aggregate.share))
        low, high, _ = self._neighbors(aggregate)
        return self._value(max(0.0, min(low, share - error))), self._value(min(1.0, max(high, share + error)))

    def _neighbors(self, aggregate: Aggregate) -> tuple[float, float, float]:
        """The two rows around the quantile, as shares of all rows, and the fraction of the way between them."""
        if aggregate.kind == DISCRETE:
            row = max(1, self.count - math.floor(self.count - self.count * Fraction(aggregate.share))) - 1
            return self._middle(row), self._middle(row), 0.0
        position = (self.count - 1) * float(aggregate.share)
        low = math.floor(position)
        return self._middle(low), self._middle(math.ceil(position)), position - low

    def _middle(self, row: int) -> float:
        return (row + 0.5) / self.count

    def _value(self, share: float) -> str:
        """The value below which ``share`` of the rows lie."""
        index, within = self._locate(share)
        text = self.values.value_at(int(self.codes[index]), within)
        assert text is not None
        return text

    def _locate(self, share: float) -> tuple[int, float]:
        """The index of the code that the quantile at ``share`` has, and which part of the code's rows is below it."""
        point = share * self._ends[-1]
        index = min(int(np.searchsorted(self._ends, point, side="right")), len(self._ends) - 1)
        return index, min(max(float(1.0 - (self._ends[index] - point) / self.rows[index]), 0.0), 1.0)

    def _between(self, low: str, high: str, fraction: float, kind: str) -> str:
        """The value at a fraction of the way from ``low`` to ``high``. Decimals are cut, as in DuckDB."""
        column = self.values.column.type
        if low == high:
            return low
        scale = scale_of(column)
        if column in TIMES:
            start, end = scale.read(column, low), scale.read(column, high)
            return written(kind, start + round((end - start) * Fraction(fraction)))
        if DECIMAL.fullmatch(column) and scale.step is not None:
            start, end = Fraction(low) / scale.step, Fraction(high) / scale.step
            return written(column, int(start + (end - start) * Fraction(fraction)) * scale.step)
        return repr(float(low) + (float(high) - float(low)) * fraction)
