"""A grid's column as a number line: its knots, the position of a cut, and the share of each cell between cuts."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.cached_property import cached_property
from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TEXT
from countless.errors import ModelFileError
from countless.query.domains.truth import Truth
from countless.query.grids.nearest import nearest_value
from countless.query.grids.ranges import Cut, Range, Ranges
from countless.query.grids.scale import Key, Scale, interpolate, scale_of, written

MOST_PROBES = 16_384  # of a column: values between its knots
LEAST_PROBES, DENSEST_PROBES = 2, 32  # between two knots
MOST_CUTS = 1_024  # of a clause: between more, values are not counted
BARELY = 1e-9  # of a cell: the least that a range within it has, if it can hold a value


class Line:
    """The knots of a column with a grid, in their order."""

    def __init__(self, column: Column, grid: Grid) -> None:
        self.column = column
        self.grid = grid
        self.has_null = column.has_null
        self.scale = scale_of(column.type)
        try:
            keys = [self.scale.read(column.type, text) for text in column.values]
            sound = None not in keys and self._in_order(keys)
        except (ValueError, ArithmeticError):
            sound = False
        if not sound:
            raise ModelFileError(
                f'the model file is damaged: the grid of "{column.name}" is out of order; fit it again'
            )
        self.keys: list[Key] = keys

    def _in_order(self, keys: list[Key]) -> bool:
        """Whether the keys rise, and those that have no place on a line are alone in their cells."""
        alone = (self.grid.distinct[self.grid.cell_of(knot)] == 1 for knot, key in enumerate(keys) if _endless(key))
        return all(low < high for low, high in pairwise(keys)) and all(alone)

    @cached_property
    def probes(self) -> dict[Key, Key]:
        """The knots and some values between them, in order: each speaks for the values around it.

        They come by where what they speak for begins. There are the more, the fewer cells there are. They lie at
        random, but always the same: values at equal distances might all be at the same time of the day.
        """
        if self.column.type == TEXT:
            return {key: key for key in self.keys}
        rng, gaps = np.random.default_rng(0), max(1, len(self.keys) - self.grid.cells)
        each = min(max(MOST_PROBES // gaps, LEAST_PROBES), DENSEST_PROBES)
        found: dict[Key, Key] = {}
        for cell in range(self.grid.cells):
            knots = self.grid.knots(cell)
            own = set(self.keys[knots.start : knots.stop])
            for low, high in pairwise(self.keys[knots.start : knots.stop]):
                ways = ((np.arange(each) + rng.random(each)) / each).tolist()
                own |= {self.nearest(interpolate(low, high, way), (low, 1), (high, 0)) for way in ways}
            ordered = sorted(own - {None})
            found[ordered[0]] = ordered[0]
            for low, high in pairwise(ordered):
                middle = interpolate(low, high, 0.5)
                found[middle if low < middle else high] = high
        return found

    @cached_property
    def probe_texts(self) -> list[str]:
        """The probes as DuckDB prints them."""
        texts = dict(zip(self.keys, self.column.values, strict=True))
        return [texts[key] if key in texts else written(self.column.type, key) for key in self.probes.values()]

    def nearest(self, key: Key, low: Cut, high: Cut) -> Key | None:
        """The value such as the column has that is nearest to ``key`` between two cuts, if there is one."""
        return nearest_value(self.column.type, self.grid.granularity, key, low, high)

    @cached_property
    def knot_places(self) -> dict[Cut, tuple[int, float]]:
        """The cut before every knot, and its place."""
        return {(key, 0): self.place((key, 0)) for key in self.keys}

    @cached_property
    def probe_places(self) -> dict[Cut, tuple[int, float]]:
        """The cut before what every probe speaks for, and its place."""
        return {(key, 0): self.place((key, 0)) for key in self.probes}

    @cached_property
    def knot_atoms(self) -> Atoms:
        """The line cut at its knots and nowhere else."""
        return Atoms(self, (), with_knots=True)

    def place(self, cut: Cut) -> tuple[int, float]:
        """The cell that ``cut`` is in, and the share of the cell's rows before it.

        Of the share of a cell's rows, one value has ``1 / distinct``; the others' part lies between the knots.
        """
        key, side = cut
        knot = bisect_right(self.keys, key) - 1
        if knot < 0:
            return 0, 0.0
        cell = self.grid.cell_of(knot)
        each, shares = 1 / self.grid.distinct[cell], self.grid.shares
        if knot + 1 == self.grid.knots(cell).stop:
            return (cell, 1.0) if side or self.keys[knot] < key else (cell, shares[knot] * (1 - each))
        return cell, self.below(key)[1] * (1 - each) + side * each

    def below(self, key: Key) -> tuple[int, float]:
        """The cell that ``key`` is in, or after, and how far it is on the way through its knots."""
        knot = bisect_right(self.keys, key) - 1
        if knot < 0:
            return 0, 0.0
        cell, shares = self.grid.cell_of(knot), self.grid.shares
        if knot + 1 == self.grid.knots(cell).stop:
            return cell, shares[knot]
        low, high = self.keys[knot], self.keys[knot + 1]
        way = min(max(self.scale.between(key, low, high), 0.0), 1.0) if low < key else 0.0
        return cell, shares[knot] + way * (shares[knot + 1] - shares[knot])

    def ends_of(self, cell: int) -> tuple[Cut, Cut]:
        """The cuts before the first value of a cell and after its last."""
        knots = self.grid.knots(cell)
        return (self.keys[knots.start], 0), (self.keys[knots.stop - 1], 1)

    def holds(self, low: Cut, high: Cut) -> bool:
        """Whether a value can be between two cuts: between two neighbours among whole numbers, none can."""
        step = self.scale.step
        return low < high and (step is None or (low[1], high[1]) != (1, 0) or high[0] - low[0] > step)

    def may_hold(self, key: Key) -> bool:
        """Whether ``key`` can be a value: not if it lies beyond both ends, or between two cells."""
        knot = bisect_right(self.keys, key) - 1
        if knot < 0 or self.keys[knot] == key:
            return knot >= 0
        return knot + 1 < self.grid.knots(self.grid.cell_of(knot)).stop


@dataclass(frozen=True)
class Piece:
    """A part of a cell between two cuts: how much of the cell it is, and its way through the knots, from 0 to 1.

    What is known of it was told at ``told``, which is in it, or near.
    """

    mass: float
    low: Cut
    high: Cut
    start: float
    end: float
    told: Key


def check_grids(schema: Schema) -> None:
    """Raise a :class:`~countless.errors.ModelFileError` now, not at a question, if a grid is out of order."""
    for column in schema.coded:
        if column.grid is not None:
            Line(column, column.grid)


def most_values(scale: Scale, pieces: Iterable[Sequence[Cut | None]], null: bool) -> int | None:
    """How many values can be in these ``pieces`` of a line together; None if any number, or ``null``.

    >>> day = scale_of("INTEGER")
    >>> most_values(day, [((3, 0), (3, 1)), ((5, 0), (9, 1))], False), most_values(day, [((3, 0), None)], False)
    (6, None)
    >>> most_values(day, [], False), most_values(day, [], True)
    (0, None)
    """
    if null:
        return None
    total = 0
    for low, high in pieces:
        if low is None or high is None:
            return None
        if (low[0], low[1], high[1]) == (high[0], 0, 1):
            total += 1
        elif scale.step is None or not all(isinstance(key, int | Fraction) for key, _ in (low, high)):
            return None
        else:
            first = math.ceil(Fraction(low[0]) / scale.step) + (low[1] and low[0] % scale.step == 0)
            last = math.floor(Fraction(high[0]) / scale.step) - (not high[1] and high[0] % scale.step == 0)
            total += max(0, last - first + 1)
    return total


class Atoms:
    """A line cut into atoms: what a clause says of a value depends only on the atom that the value is in.

    Sets of atoms are arrays with a place for each and, last, one for NULL if it occurs; atoms that can hold no value
    have no place.
    """

    def __init__(self, line: Line, cuts: Iterable[Cut], with_knots: bool, probing: bool = False) -> None:
        """With its knots, a line is cut at these too; if ``probing``, at the probes, which include them."""
        self.line = line
        self._points = list(line.probes) if with_knots and probing else line.keys
        places = dict(line.probe_places if probing else line.knot_places) if with_knots else {}
        places |= {cut: line.place(cut) for cut in cuts if cut not in places}
        self.cuts = sorted(places)
        cells = np.array([places[cut][0] for cut in self.cuts], dtype=np.int64)
        shares = np.array([places[cut][1] for cut in self.cuts])
        # A segment is what an atom and a cell have in common. A cut ends an atom and the end of a cell ends none, so
        # that the number of a segment is that of its atom and of its cell together.
        inside = np.bincount(cells, minlength=line.grid.cells)
        self._cell = np.repeat(np.arange(line.grid.cells), inside + 1)
        self._atom = np.arange(len(self._cell)) - self._cell
        last = np.cumsum(inside + 1) - 1
        ends, starts = np.ones(len(self._cell)), np.zeros(len(self._cell))
        is_cut = np.ones(len(self._cell), dtype=bool)
        is_cut[last] = False
        ends[is_cut] = shares
        starts[1:][is_cut[:-1]] = shares
        mass = ends - starts
        # What can hold a value is never rounded to nothing, nor the rest of its cell to the whole: bounds rely on it.
        for segment in np.flatnonzero(mass < BARELY).tolist():
            mass[segment] = BARELY if self.line.holds(*self._ends(segment)) else 0.0
        self._mass = mass
        self._whole = np.bincount(self._cell, self._mass)
        self._alive = np.bincount(self._atom, self._mass, minlength=len(self.cuts) + 1) > 0

    def within(self, ranges: Ranges) -> Truth:
        """The atoms in which a comparison is true and those in which it is false."""
        true = np.zeros(len(self.cuts) + 1, dtype=bool)
        for piece in ranges.true:
            true[self._between(piece)] = True
        false = ~true if ranges.false_elsewhere else np.zeros_like(true)
        return Truth(self._with_null(true, ranges.of_null is True), self._with_null(false, ranges.of_null is False))

    def by_knots(self, truth: Truth) -> Truth:
        """The same for a predicate that is known at the knots, each of which speaks for the values up to the next.

        If the line was cut at its probes, it is known at these.
        """
        owners, known = self._owners, len(self._points)
        return Truth(
            self._with_null(truth.true[owners], bool(truth.true[known:].any())),
            self._with_null(truth.false[owners], bool(truth.false[known:].any())),
        )

    @cached_property
    def _owners(self) -> IntArray:
        """The point that speaks for each atom."""
        return np.array([0, *(max(0, bisect_right(self._points, key) - 1) for key, _ in self.cuts)])

    def null(self) -> Truth:
        """IS NULL."""
        nowhere = np.zeros(len(self.cuts) + 1, dtype=bool)
        return Truth(self._with_null(nowhere, True), self._with_null(~nowhere, False))

    def weights(self, chosen: BoolArray) -> FloatArray:
        """For every code of the column, NULL included, how much of it the chosen atoms make up."""
        cells = np.bincount(self._cell, self._mass * self.kept(chosen)[self._atom]) / self._whole
        return np.append(cells, float(chosen[-1])) if self.line.has_null else cells

    def most_rows(self, chosen: BoolArray) -> int | None:
        """How many rows of a unique column a set of atoms can have; None if any number."""
        if len(self.cuts) > MOST_CUTS:
            return None
        ends = [None, *self.cuts, None]
        own = np.flatnonzero(self.kept(chosen)).tolist()
        null = self.line.has_null and bool(chosen[-1])
        return most_values(self.line.scale, [ends[atom : atom + 2] for atom in own], null)

    def kept(self, chosen: BoolArray) -> BoolArray:
        """Of all atoms, those that hold no value included, which are chosen."""
        kept = np.zeros(len(self._alive), dtype=bool)
        kept[self._alive] = chosen[: np.count_nonzero(self._alive)]
        return kept

    def pieces(self, kept: BoolArray, cell: int) -> list[Piece]:
        """What the atoms that are :meth:`kept` have of a cell."""
        first, end = np.searchsorted(self._cell, (cell, cell + 1)).tolist()
        line, found = self.line, []
        for segment in range(first, end):
            atom = int(self._atom[segment])
            if not kept[atom] or not self._mass[segment] > 0:
                continue
            low, high = self._ends(segment)
            if low < high:
                shares = line.below(low[0])[1], line.below(high[0])[1]
                told = low[0]
                if self._points is not line.keys:
                    told = line.probes[self._points[bisect_right(self._points, told) - 1]]
                found.append(Piece(float(self._mass[segment]), low, high, *shares, told))
        return found

    def _ends(self, segment: int) -> tuple[Cut, Cut]:
        """The cuts that a segment lies between, within its cell."""
        atom = int(self._atom[segment])
        low, high = self.line.ends_of(int(self._cell[segment]))
        if atom:
            low = max(self.cuts[atom - 1], low)
        return low, min(self.cuts[atom], high) if atom < len(self.cuts) else high

    def share(self, chosen: BoolArray) -> float:
        """The share of the column's distinct values that the chosen atoms make up."""
        grid = self.line.grid
        return float(self.weights(chosen)[: grid.cells] @ np.array(grid.distinct, dtype=np.float64) / grid.values)

    def _between(self, piece: Range) -> slice:
        low, high = piece
        first = 0 if low is None else bisect_left(self.cuts, low) + 1
        end = len(self.cuts) + 1 if high is None else bisect_left(self.cuts, high) + 1
        return slice(first, end)

    def _with_null(self, atoms: BoolArray, null: bool) -> BoolArray:
        alive = atoms[self._alive]
        return np.append(alive, null) if self.line.has_null else alive


def _endless(key: Key) -> bool:
    return isinstance(key, float) and math.isinf(key)
