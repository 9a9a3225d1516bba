"""Histogram bins of a column: the edges, and the share of each code in each bin."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from countless.arrays import FloatArray
from countless.data.columns.schema import Column
from countless.data.columns.types import TEXT, TIMES, is_number
from countless.errors import QueryTypeError
from countless.estimator.answers.distributions.values import Values
from countless.estimator.arguments import whole
from countless.query.grids.line import Line
from countless.query.grids.scale import (
    DAY,
    END_OF_TIME,
    PAST_EVERY_DOUBLE,
    Key,
    month_of,
    scale_of,
    start_of_month,
    written,
)

DEFAULT_BINS = 20  # for a column that has too many values to list
MAX_BINS = 10_000
MAX_BIN_FACTOR = 2  # up to this many times the requested bins, if each bin then has a single value
ROUND = (1, 2, Fraction(5, 2), 5)  # steps between edges, times powers of ten
SECOND = 10**9
SPANS = (*(SECOND * s for s in (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200)), DAY, 7 * DAY)
MONTHS = (1, 3, 12, 24, 60, 120, 240, 600, 1_200)  # bins longer than a week are whole months, quarters or years
LONGEST_MONTH = 31 * DAY


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of a column. A bin includes its left edge; only the last bin includes its right edge too.

    ``edges`` are as DuckDB prints them, ``cuts`` are the same edges as keys. ``shares`` (codes, bins) is how much of
    each code is in each bin. NULL has a bin of its own, the last one, if it occurs.
    """

    edges: tuple[str, ...]
    cuts: tuple[Key, ...]
    shares: FloatArray
    has_null: bool

    @property
    def cuts_codes(self) -> bool:
        """Whether an edge divides a code: a part of it is in one bin, the rest is not."""
        return bool(((self.shares > 0.0) & (self.shares < 1.0)).any())


def can_be_binned(kind: str) -> bool:
    """Whether values of this type are numbers or times, which can be grouped into bins."""
    return is_number(kind) or kind in TIMES


def bins_of(column: Column, requested: int | Sequence[Any]) -> Bins:
    """The ``requested`` bins: about this many of equal width with round edges, or those between these edges.

    A bin begins with its left edge and ends before the right one, which only the last bin includes.

    >>> bins = bins_of(Column("n", "INTEGER", ("3", "8", "21"), has_null=True), 3)
    >>> bins.edges, bins.shares.tolist()
    (('0', '10', '20', '30'), [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    """
    if not can_be_binned(column.type):
        raise QueryTypeError(f'"{column.name}" is {column.type}, which has no bins: leave bins out')
    keys = Values(column).keys
    if not are_edges(requested):
        requested = whole(requested, "the number of bins", 1)
        if requested > MAX_BINS:
            raise QueryTypeError(f"the number of bins must be between 1 and {MAX_BINS:,}, not {requested}")
        edges = _round_edges(column.type, [key for key in keys if _is_finite(column.type, key)], requested)
    else:
        edges = _given_edges(column, requested)
    below = _below(column, edges)
    shares = np.diff(below, axis=1)
    if column.has_null:
        shares = np.pad(shares, ((0, 1), (0, 1)))
        shares[-1, -1] = 1.0
    return Bins(tuple(written(column.type, edge) for edge in edges), tuple(edges), shares, column.has_null)


def _below(column: Column, edges: Sequence[Key]) -> FloatArray:
    """For each code except NULL, the share that is below each edge; for the last edge, at or below it."""
    below = np.zeros((column.null, len(edges)))
    if column.grid is not None:
        line = Line(column, column.grid)
        for index, edge in enumerate(edges):
            cell, share = line.position((edge, int(index == len(edges) - 1)))
            below[:cell, index] = 1.0
            below[cell, index] = share
        return below
    keys = Values(column).keys
    for index, edge in enumerate(edges):
        is_last = index == len(edges) - 1
        below[: bisect_right(keys, edge) if is_last else _first_at(keys, edge), index] = 1.0
    return below


def _first_at(keys: Sequence[Key], edge: Key) -> int:
    index = bisect_right(keys, edge)
    return index - 1 if index and keys[index - 1] == edge else index


def _is_finite(kind: str, key: Key) -> bool:
    limit = END_OF_TIME if kind in TIMES else PAST_EVERY_DOUBLE
    return bool(-limit < key < limit)


def _round_edges(kind: str, keys: Sequence[Key], requested: int) -> list[Key]:
    """Edges at multiples of a round step, around all keys. If bins have a single value, so has the last one."""
    if not keys:
        return [0, 1]
    low, high = Fraction(keys[0]), Fraction(keys[-1])
    if kind in TIMES and (high - low) / requested > SPANS[-1]:
        return _calendar_edges(low, high, requested)
    step = _round_step(kind, max((high - low) / requested, Fraction(1, 10**300)))
    smallest = scale_of(kind).step
    if smallest is not None and len(keys) <= requested and (high - low) / smallest < MAX_BIN_FACTOR * requested:
        step = Fraction(smallest)
    first = math.floor(low / step)
    last = math.floor(high / step) + 1 if step == smallest else math.ceil(high / step)
    count = max(1, last - first)
    return [_as_key((first + index) * step) for index in range(count + 1)]


def _calendar_edges(low: Fraction, high: Fraction, requested: int) -> list[Key]:
    """Edges where months, quarters or years begin.

    >>> from countless.query.grids.scale import scale_of
    >>> low, high = (scale_of("DATE").read("DATE", day) for day in ("2023-02-03", "2024-11-30"))
    >>> [written("DATE", edge) for edge in _calendar_edges(low, high, 2)]
    ['2023-01-01', '2024-01-01', '2025-01-01']
    """
    least = (high - low) / requested / LONGEST_MONTH
    step = next((months for months in MONTHS if months >= least), MONTHS[-1] * math.ceil(least / MONTHS[-1]))
    first = month_of(low) // step * step
    edges = [start_of_month(first), start_of_month(first + step)]
    while edges[-1] < high:
        edges.append(start_of_month(first + step * len(edges)))
    return edges


def _round_step(kind: str, least: Fraction) -> Fraction:
    """The least round step of at least ``least``, and of at least the distance between neighboring values."""
    smallest = scale_of(kind).step
    if kind in TIMES:
        return Fraction(next(span for span in SPANS if span >= max(least, smallest or 0)))
    scale = Fraction(10) ** math.floor(math.log10(least))
    step = next(scale * factor for factor in (*ROUND, 10) if scale * factor >= least)
    return step if smallest is None else max(Fraction(math.ceil(step / smallest)) * smallest, Fraction(smallest))


def _as_key(key: Fraction) -> Key:
    return key.numerator if key.denominator == 1 else key


def are_edges(bins: Any) -> TypeGuard[Sequence[Any]]:
    """Whether edges are given, and not a number of bins."""
    return isinstance(bins, Iterable) and not isinstance(bins, str)


def _given_edges(column: Column, requested: Sequence[Any]) -> list[Key]:
    scale = scale_of(column.type)
    kind = "DOUBLE" if is_number(column.type) else column.type
    try:
        edges = [scale.read(kind, str(edge)) for edge in requested]
    except ValueError as error:
        raise QueryTypeError(f'"{column.name}" is {column.type}, and an edge of its bins is not: {error}') from None
    if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
        raise QueryTypeError("bins need at least two edges, each greater than the one before")
    return edges


def needs_bins(column: Column) -> bool:
    """Whether a column is stored as a grid, so that it can only be shown in bins. A grid of text is an error."""
    if column.grid is not None and column.type == TEXT:
        raise QueryTypeError(f'"{column.name}" has too many values to be listed: ask for some of them in a condition')
    return column.grid is not None
