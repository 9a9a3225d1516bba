"""The values of a column's codes: as text, as numbers, and sampled from a grid's cells."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray, IntArray
from countless.cached_property import cached_property
from countless.data.columns.schema import Column
from countless.data.columns.types import TEXT
from countless.query.grids.nearest import nearest_value
from countless.query.grids.ranges import Cut
from countless.query.grids.scale import Key, interpolate, scale_of, written

WHOLE = 0.0, 1.0


@dataclass(frozen=True)
class Values:
    """The values that the codes of ``column`` stand for.

    ``parts`` limits cells of a grid to a part of their rows, from one share of the rows to another.

    >>> values = Values(Column("n", "INTEGER", ("1", "3"), has_null=True))
    >>> values.texts, values.means.tolist()
    (['1', '3', None], [1.0, 3.0, nan])
    """

    column: Column
    parts: Mapping[int, tuple[float, float]] = field(default_factory=dict, compare=False)

    @cached_property
    def texts(self) -> list[str | None]:
        """For each code its value as DuckDB prints it, None for NULL; for a grid's cell, its least value."""
        column = self.column
        values = column.values if column.grid is None else [column.values[start] for start in column.grid.starts]
        return [*values, None] if column.has_null else list(values)

    @cached_property
    def keys(self) -> list[Key]:
        """The known values as keys on a line (:mod:`countless.query.grids.scale`): all of them, or the grid's knots."""
        scale = scale_of(self.column.type)
        return [scale.read(self.column.type, text) for text in self.column.values]

    @cached_property
    def means(self) -> FloatArray:
        """For each code the mean of its values as a number, NaN for NULL."""
        return self._moments[0]

    @cached_property
    def variances(self) -> FloatArray:
        """For each code the variance of its values, which is 0 unless the code is a grid's cell."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        numbers = np.array([float(text) for text in self.column.values])
        null = np.full(int(self.column.has_null), np.nan)
        grid = self.column.grid
        if grid is None:
            return np.append(numbers, null), np.append(np.zeros(len(numbers)), null)
        means, variances = np.empty(grid.cells), np.empty(grid.cells)
        for cell in range(grid.cells):
            knots = grid.knots(cell)
            cell_knots, shares = numbers[knots.start : knots.stop], np.array(grid.shares[knots.start : knots.stop])
            means[cell], variances[cell] = _moments_between(cell_knots, shares, *self.parts.get(cell, WHOLE))
        return np.append(means, null), np.append(variances, null)

    def draw(self, codes: IntArray, rng: np.random.Generator) -> list[str | None]:
        """A value for each of ``codes``, as DuckDB prints it; for a grid's cell, a random value from the cell."""
        grid = self.column.grid
        if grid is None:
            return self._texts_of(codes)
        points = rng.random(len(codes))
        return [
            self.plausible_value_at(code, point) for code, point in zip(codes.tolist(), points.tolist(), strict=True)
        ]

    def value_at(self, code: int, point: float) -> str | None:
        """The value of ``code`` as DuckDB prints it; for a grid's cell, that below which ``point`` of its rows lie."""
        grid = self.column.grid
        if grid is None or code == self.column.null:
            return self.texts[code]
        start, end = self.parts.get(code, WHOLE)
        key = self.key_at(code, start + point * (end - start))
        return self._knots[key] if key in self._knots else written(self.column.type, key)

    def plausible_value_at(self, code: int, point: float) -> str | None:
        """The value near :meth:`value_at` that has the table's precision, such as whole minutes or two decimals."""
        grid = self.column.grid
        if grid is None or code == self.column.null:
            return self.texts[code]
        knots = grid.knots(code)
        low, high = self.keys[knots.start], self.keys[knots.stop - 1]
        value = self.between((low, 0), (high, 1), self.key_at(code, point))
        return self.texts[code] if value is None else value

    def between(self, low: Cut, high: Cut, key: Key) -> str | None:
        """The value nearest to ``key`` between two cuts of a grid's cell; None if there is none.

        Numbers and times have as many digits as those of the table.
        """
        column, grid = self.column, self.column.grid
        assert grid is not None
        if key in self._knots and low <= (key, 0) < high:
            return self._knots[key]
        if column.type == TEXT:
            return self._first_string(low, high)
        nearest = nearest_value(column.type, grid.granularity, key, low, high)
        return None if nearest is None else written(column.type, nearest)

    def _first_string(self, low: Cut, high: Cut) -> str | None:
        """The first knot between two cuts, or the one string that there can be."""
        index = bisect_right(self.keys, low[0]) if low[1] else bisect_left(self.keys, low[0])
        if index < len(self.keys) and (self.keys[index], 0) < high:
            return str(self.keys[index])
        return str(low[0]) if low[0] == high[0] else None

    @cached_property
    def _knots(self) -> dict[Key, str]:
        return dict(zip(self.keys, self.column.values, strict=True))

    def key_at(self, cell: int, point: float) -> Key:
        """The key below which ``point`` of the cell's rows lie; for strings, the knot before it."""
        grid = self.column.grid
        assert grid is not None
        knots = grid.knots(cell)
        after = bisect_right(grid.shares, point, knots.start, knots.stop)
        low = max(knots.start, after - 1)
        high = min(low + 1, knots.stop - 1)
        if self.column.type == TEXT or low == high:
            return self.keys[low]
        fraction = (point - grid.shares[low]) / max(grid.shares[high] - grid.shares[low], 1e-12)
        return interpolate(self.keys[low], self.keys[high], fraction)

    def _texts_of(self, codes: IntArray) -> list[str | None]:
        texts: NDArray[Any] = np.array(self.texts, dtype=object)
        values: list[str | None] = texts[codes].tolist()
        return values


def _moments_between(knots: FloatArray, shares: FloatArray, start: float, end: float) -> tuple[float, float]:
    """Mean and variance of values that are uniform between ``knots``, for the rows from share ``start`` to ``end``."""
    inside = (shares > start) & (shares < end)
    points = np.concatenate([[start], shares[inside], [end]])
    values = np.interp(points, shares, knots) if len(knots) > 1 else np.full(len(points), knots[0])
    if len(knots) == 1 or start == end:
        return float(values[0]), 0.0
    low, high, weights = values[:-1], values[1:], np.diff(points) / (end - start)
    mean = float(weights @ (low + high) / 2)
    square = float(weights @ (low * low + low * high + high * high) / 3)
    return mean, max(square - mean**2, 0.0)
