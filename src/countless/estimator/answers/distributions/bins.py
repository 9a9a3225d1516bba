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

DEFAULT_BINS = 20  # of a column whose values are too many to be listed
MOST_BINS = 10_000
MOST_GAPS = 2  # times as many bins as were asked for, if each then has a value to itself
ROUND = (1, 2, Fraction(5, 2), 5)  # steps between edges, times powers of ten
SECOND = 10**9
SPANS = (*(SECOND * s for s in (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200)), DAY, 7 * DAY)
MONTHS = (1, 3, 12, 24, 60, 120, 240, 600, 1_200)  # beyond a week, bins are of whole months, quarters or years
LONGEST_MONTH = 31 * DAY


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of a column, the last one with both its edges: their edges as DuckDB prints them, as keys, and ``shares``.

    ``shares`` (codes, bins) is how much of each code is in each bin; NULL has the last bin, if it occurs.
    """

    edges: tuple[str, ...]
    cuts: tuple[Key, ...]
    shares: FloatArray
    has_null: bool

    @property
    def cuts_codes(self) -> bool:
        """Whether a part of a code is in a bin, and the rest of it is not."""
        return bool(((self.shares > 0.0) & (self.shares < 1.0)).any())


def can_be_binned(kind: str) -> bool:
    """Whether values of this type lie on a line that can be cut anywhere."""
    return is_number(kind) or kind in TIMES


def bins_of(column: Column, wanted: int | Sequence[Any]) -> Bins:
    """About this many bins of equal width with round edges, or those between the given edges.

    A bin begins with its left edge and ends before the right one, which only the last bin includes.

    >>> bins = bins_of(Column("n", "INTEGER", ("3", "8", "21"), has_null=True), 3)
    >>> bins.edges, bins.shares.tolist()
    (('0', '10', '20', '30'), [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    """
    if not can_be_binned(column.type):
        raise QueryTypeError(f'"{column.name}" is {column.type}, which has no bins: leave bins out')
    keys = Values(column).keys
    if not are_edges(wanted):
        wanted = whole(wanted, "the number of bins", 1)
        if wanted > MOST_BINS:
            raise QueryTypeError(f"the number of bins must be between 1 and {MOST_BINS:,}, not {wanted}")
        edges = _round_edges(column.type, [key for key in keys if _finite(column.type, key)], wanted)
    else:
        edges = _given_edges(column, wanted)
    below = _below(column, edges)
    shares = np.diff(below, axis=1)
    if column.has_null:
        shares = np.pad(shares, ((0, 1), (0, 1)))
        shares[-1, -1] = 1.0
    return Bins(tuple(written(column.type, edge) for edge in edges), tuple(edges), shares, column.has_null)


def _below(column: Column, edges: Sequence[Key]) -> FloatArray:
    """For each code but NULL, which share of it is below each edge; of the last edge, at or below it."""
    found = np.zeros((column.null, len(edges)))
    if column.grid is not None:
        line = Line(column, column.grid)
        for index, edge in enumerate(edges):
            cell, share = line.position((edge, int(index == len(edges) - 1)))
            found[:cell, index] = 1.0
            found[cell, index] = share
        return found
    keys = Values(column).keys
    for index, edge in enumerate(edges):
        last = index == len(edges) - 1
        found[: bisect_right(keys, edge) if last else _first_at(keys, edge), index] = 1.0
    return found


def _first_at(keys: Sequence[Key], edge: Key) -> int:
    place = bisect_right(keys, edge)
    return place - 1 if place and keys[place - 1] == edge else place


def _finite(kind: str, key: Key) -> bool:
    limit = END_OF_TIME if kind in TIMES else PAST_EVERY_DOUBLE
    return bool(-limit < key < limit)


def _round_edges(kind: str, keys: Sequence[Key], wanted: int) -> list[Key]:
    """Edges a round step apart, that hold every key. Bins of one value each hold no other, not even the last one."""
    if not keys:
        return [0, 1]
    low, high = Fraction(keys[0]), Fraction(keys[-1])
    if kind in TIMES and (high - low) / wanted > SPANS[-1]:
        return _calendar_edges(low, high, wanted)
    step = _round_step(kind, max((high - low) / wanted, Fraction(1, 10**300)))
    smallest = scale_of(kind).step
    if smallest is not None and len(keys) <= wanted and (high - low) / smallest < MOST_GAPS * wanted:
        step = Fraction(smallest)
    first = math.floor(low / step)
    last = math.floor(high / step) + 1 if step == smallest else math.ceil(high / step)
    count = max(1, last - first)
    return [_plain((first + place) * step) for place in range(count + 1)]


def _calendar_edges(low: Fraction, high: Fraction, wanted: int) -> list[Key]:
    """Edges where months, quarters or years begin.

    >>> from countless.query.grids.scale import scale_of
    >>> low, high = (scale_of("DATE").read("DATE", day) for day in ("2023-02-03", "2024-11-30"))
    >>> [written("DATE", edge) for edge in _calendar_edges(low, high, 2)]
    ['2023-01-01', '2024-01-01', '2025-01-01']
    """
    least = (high - low) / wanted / LONGEST_MONTH
    step = next((months for months in MONTHS if months >= least), MONTHS[-1] * math.ceil(least / MONTHS[-1]))
    first = month_of(low) // step * step
    edges = [start_of_month(first), start_of_month(first + step)]
    while edges[-1] < high:
        edges.append(start_of_month(first + step * len(edges)))
    return edges


def _round_step(kind: str, least: Fraction) -> Fraction:
    """The least round step that is no shorter, nor shorter than from one value to the next."""
    smallest = scale_of(kind).step
    if kind in TIMES:
        return Fraction(next(span for span in SPANS if span >= max(least, smallest or 0)))
    scale = Fraction(10) ** math.floor(math.log10(least))
    step = next(scale * factor for factor in (*ROUND, 10) if scale * factor >= least)
    return step if smallest is None else max(Fraction(math.ceil(step / smallest)) * smallest, Fraction(smallest))


def _plain(key: Fraction) -> Key:
    return key.numerator if key.denominator == 1 else key


def are_edges(wanted: Any) -> TypeGuard[Sequence[Any]]:
    """Whether edges are given, and not a number of bins."""
    return isinstance(wanted, Iterable) and not isinstance(wanted, str)


def _given_edges(column: Column, wanted: Sequence[Any]) -> list[Key]:
    scale = scale_of(column.type)
    kind = "DOUBLE" if is_number(column.type) else column.type
    try:
        edges = [scale.read(kind, str(edge)) for edge in wanted]
    except ValueError as error:
        raise QueryTypeError(f'"{column.name}" is {column.type}, and an edge of its bins is not: {error}') from None
    if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
        raise QueryTypeError("bins need at least two edges, each greater than the one before")
    return edges


def needs_bins(column: Column) -> bool:
    """Whether a column's values are not known one by one; text of that kind is an error."""
    if column.grid is not None and column.type == TEXT:
        raise QueryTypeError(f'"{column.name}" has too many values to be listed: ask for some of them in a condition')
    return column.grid is not None
