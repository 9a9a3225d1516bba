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
    """The values of one group in their order: ``codes``, the ``rows`` of each, and their rounded sum ``whole``.

    Rows are numbered from 0. The value of a row is that in the middle of its place, so that parts of a row do no harm.

    >>> from countless.data.columns.schema import Column
    >>> from countless.estimator.answers.distributions.values import Values
    >>> values = Values(Column("n", "INTEGER", ("1", "3", "9"), has_null=False))
    >>> ranked = Ranked(values, np.array([0, 1, 2]), np.array([2.1, 1.2, 0.7]), 4)
    >>> ranked.quantile(Aggregate("median", 0, "0.5"), "DOUBLE")
    '2.0'
    """

    def __init__(self, values: Values | CellValues, codes: IntArray, rows: FloatArray, whole: int) -> None:
        self.values = values
        self.codes = codes
        self.rows = rows
        self.whole = whole
        self._ends = np.cumsum(rows)

    def quantile(self, aggregate: Aggregate, kind: str) -> str | None:
        """The quantile as DuckDB prints it, if its type is ``kind``; None if there are no rows."""
        if not self.whole:
            return None
        low, high, way = self._places(aggregate)
        first = self._value(low)
        return first if low == high else self._between(first, self._value(high), way, kind)

    def bar(self, aggregate: Aggregate, kind: str, bars: Bars) -> tuple[str | None, str | None]:
        """The ends of its error bar: the values where the share of rows below may be off to."""
        if bars.certain or not self.whole:
            found = self.quantile(aggregate, kind)
            return found, found
        share = float(Fraction(aggregate.share))
        return self.ends(aggregate, bars.reach * self.share_error(share, bars))

    def share_error(self, share: float, bars: Bars) -> float:
        """The standard error of the ``share`` of rows that are below a quantile."""
        counted = ((self._ends - self.rows) / self._ends[-1] < share).astype(np.float64)
        return bars.of_share(self.rows, counted, share)

    def below(self, share: float, codes: IntArray) -> FloatArray:
        """Which of ``codes`` are below the value that ``share`` of the rows are below: 0, 1, or a part of its code."""
        at, within = self._place(share)
        found: FloatArray = np.where(codes == self.codes[at], within, codes < self.codes[at])
        return found

    def ends(self, aggregate: Aggregate, off: float) -> tuple[str | None, str | None]:
        """The values where the share of rows below a quantile is ``off`` by so much to either side."""
        if not self.whole:
            return None, None
        share = float(Fraction(aggregate.share))
        low, high, _ = self._places(aggregate)
        return self._value(max(0.0, min(low, share - off))), self._value(min(1.0, max(high, share + off)))

    def _places(self, aggregate: Aggregate) -> tuple[float, float, float]:
        """Between which rows the quantile lies, as shares of all rows, and how far on the way from one to the other."""
        if aggregate.kind == DISCRETE:
            row = max(1, self.whole - math.floor(self.whole - self.whole * Fraction(aggregate.share))) - 1
            return self._middle(row), self._middle(row), 0.0
        place = (self.whole - 1) * float(aggregate.share)
        low = math.floor(place)
        return self._middle(low), self._middle(math.ceil(place)), place - low

    def _middle(self, row: int) -> float:
        return (row + 0.5) / self.whole

    def _value(self, share: float) -> str:
        """The value below which ``share`` of the rows lie."""
        at, within = self._place(share)
        text = self.values.at(int(self.codes[at]), within)
        assert text is not None
        return text

    def _place(self, share: float) -> tuple[int, float]:
        """Among which code's rows that value is, and which part of them is below it."""
        point = share * self._ends[-1]
        at = min(int(np.searchsorted(self._ends, point, side="right")), len(self._ends) - 1)
        return at, min(max(float(1.0 - (self._ends[at] - point) / self.rows[at]), 0.0), 1.0)

    def _between(self, low: str, high: str, way: float, kind: str) -> str:
        """The value on the way from ``low`` to ``high``: of decimals the digits that fit, as DuckDB has it."""
        column = self.values.column.type
        if low == high:
            return low
        scale = scale_of(column)
        if column in TIMES:
            start, end = scale.read(column, low), scale.read(column, high)
            return written(kind, start + round((end - start) * Fraction(way)))
        if DECIMAL.fullmatch(column) and scale.step is not None:
            start, end = Fraction(low) / scale.step, Fraction(high) / scale.step
            return written(column, int(start + (end - start) * Fraction(way)) * scale.step)
        return repr(float(low) + (float(high) - float(low)) * way)
