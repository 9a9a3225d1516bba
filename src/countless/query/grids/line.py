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

MOST_PROBES = 16_384  # values per column at which a predicate is evaluated
LEAST_PROBES, DENSEST_PROBES = 2, 32  # probes between two knots
MOST_CUTS = 1_024  # of a clause with more cuts, the values between them are not counted
LEAST_SHARE = 1e-9  # the least share of its cell for a range that can hold a value


class Line:
    """The sorted knots of a column with a grid."""

    def __init__(self, column: Column, grid: Grid) -> None:
        self.column = column
        self.grid = grid
        self.has_null = column.has_null
        self.scale = scale_of(column.type)
        try:
            keys = [self.scale.read(column.type, text) for text in column.values]
            is_sound = None not in keys and self._in_order(keys)
        except (ValueError, ArithmeticError):
            is_sound = False
        if not is_sound:
            raise ModelFileError(
                f'the model file is damaged: the grid of "{column.name}" is out of order; fit it again'
            )
        self.keys: list[Key] = keys

    def _in_order(self, keys: list[Key]) -> bool:
        """Whether the keys are increasing, and infinite keys are alone in their cells."""
        are_alone = (
            self.grid.distinct[self.grid.cell_of(knot)] == 1 for knot, key in enumerate(keys) if _is_infinite(key)
        )
        return all(low < high for low, high in pairwise(keys)) and all(are_alone)

    @cached_property
    def probes(self) -> dict[Key, Key]:
        """The knots and some values between them, in order. Each stands for the values around it.

        The key of each is the start of the range that it stands for. The fewer cells, the more probes in each. They
        are random, from a fixed seed: equally spaced ones might all be at the same time of the day.
        """
        if self.column.type == TEXT:
            return {key: key for key in self.keys}
        rng, gaps = np.random.default_rng(0), max(1, len(self.keys) - self.grid.cells)
        probes_per_gap = min(max(MOST_PROBES // gaps, LEAST_PROBES), DENSEST_PROBES)
        probes: dict[Key, Key] = {}
        for cell in range(self.grid.cells):
            knots = self.grid.knots(cell)
            cell_probes = set(self.keys[knots.start : knots.stop])
            for low, high in pairwise(self.keys[knots.start : knots.stop]):
                fractions = ((np.arange(probes_per_gap) + rng.random(probes_per_gap)) / probes_per_gap).tolist()
                cell_probes |= {
                    self.nearest(interpolate(low, high, fraction), (low, 1), (high, 0)) for fraction in fractions
                }
            ordered = sorted(cell_probes - {None})
            probes[ordered[0]] = ordered[0]
            for low, high in pairwise(ordered):
                middle = interpolate(low, high, 0.5)
                probes[middle if low < middle else high] = high
        return probes

    @cached_property
    def probe_texts(self) -> list[str]:
        """The probes as DuckDB prints them."""
        texts = dict(zip(self.keys, self.column.values, strict=True))
        return [texts[key] if key in texts else written(self.column.type, key) for key in self.probes.values()]

    def nearest(self, key: Key, low: Cut, high: Cut) -> Key | None:
        """The possible value of the column that is nearest to ``key`` between two cuts, if there is one."""
        return nearest_value(self.column.type, self.grid.granularity, key, low, high)

    @cached_property
    def knot_positions(self) -> dict[Cut, tuple[int, float]]:
        """The cut before every knot, with its position."""
        return {(key, 0): self.position((key, 0)) for key in self.keys}

    @cached_property
    def probe_positions(self) -> dict[Cut, tuple[int, float]]:
        """The cut before the range that each probe stands for, with its position."""
        return {(key, 0): self.position((key, 0)) for key in self.probes}

    @cached_property
    def knot_atoms(self) -> Atoms:
        """The line cut at its knots and nowhere else."""
        return Atoms(self, (), with_knots=True)

    def position(self, cut: Cut) -> tuple[int, float]:
        """The cell that ``cut`` is in, and the share of the cell's rows before it.

        A value has ``1 / distinct`` of the cell's rows; the rows of all other values are spread between the knots.
        """
        key, side = cut
        knot = bisect_right(self.keys, key) - 1
        if knot < 0:
            return 0, 0.0
        cell = self.grid.cell_of(knot)
        value_share, shares = 1 / self.grid.distinct[cell], self.grid.shares
        if knot + 1 == self.grid.knots(cell).stop:
            return (cell, 1.0) if side or self.keys[knot] < key else (cell, shares[knot] * (1 - value_share))
        return cell, self.below(key)[1] * (1 - value_share) + side * value_share

    def below(self, key: Key) -> tuple[int, float]:
        """The cell that ``key`` is in or after, and how far through the cell's knots it is, from 0 to 1."""
        knot = bisect_right(self.keys, key) - 1
        if knot < 0:
            return 0, 0.0
        cell, shares = self.grid.cell_of(knot), self.grid.shares
        if knot + 1 == self.grid.knots(cell).stop:
            return cell, shares[knot]
        low, high = self.keys[knot], self.keys[knot + 1]
        fraction = min(max(self.scale.between(key, low, high), 0.0), 1.0) if low < key else 0.0
        return cell, shares[knot] + fraction * (shares[knot + 1] - shares[knot])

    def ends_of(self, cell: int) -> tuple[Cut, Cut]:
        """The cuts before the first value of a cell and after its last."""
        knots = self.grid.knots(cell)
        return (self.keys[knots.start], 0), (self.keys[knots.stop - 1], 1)

    def holds(self, low: Cut, high: Cut) -> bool:
        """Whether a value can be between two cuts. Between two neighbouring integers there is none."""
        step = self.scale.step
        return low < high and (step is None or (low[1], high[1]) != (1, 0) or high[0] - low[0] > step)

    def may_hold(self, key: Key) -> bool:
        """Whether ``key`` can be a value: it cannot outside the grid, or between two cells."""
        knot = bisect_right(self.keys, key) - 1
        if knot < 0 or self.keys[knot] == key:
            return knot >= 0
        return knot + 1 < self.grid.knots(self.grid.cell_of(knot)).stop


@dataclass(frozen=True)
class Piece:
    """A part of a cell between two cuts.

    ``mass`` is its share of the cell's rows; ``start`` and ``end`` say how far through the cell's knots it lies, from 0
    to 1. The predicate was evaluated at ``probe``, a value in the piece or near it.
    """

    mass: float
    low: Cut
    high: Cut
    start: float
    end: float
    probe: Key


def check_grids(schema: Schema) -> None:
    """Raise a :class:`~countless.errors.ModelFileError` now, not at a question, if a grid is out of order."""
    for column in schema.coded:
        if column.grid is not None:
            Line(column, column.grid)


def most_values(scale: Scale, spans: Iterable[Sequence[Cut | None]], allows_null: bool) -> int | None:
    """How many values can be in all ``spans`` of a line together; None if there is no limit, or ``allows_null``.

    >>> day = scale_of("INTEGER")
    >>> most_values(day, [((3, 0), (3, 1)), ((5, 0), (9, 1))], False), most_values(day, [((3, 0), None)], False)
    (6, None)
    >>> most_values(day, [], False), most_values(day, [], True)
    (0, None)
    """
    if allows_null:
        return None
    total = 0
    for low, high in spans:
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
    """A line cut into atoms: the truth of a clause is the same for all values of an atom.

    A set of atoms is a boolean array with an element for each atom that can hold a value and, last, one for NULL if it
    occurs.
    """

    def __init__(self, line: Line, cuts: Iterable[Cut], with_knots: bool, probing: bool = False) -> None:
        """Cut the line at ``cuts``; ``with_knots`` at its knots too, or if ``probing`` at its probes."""
        self.line = line
        self._points = list(line.probes) if with_knots and probing else line.keys
        positions = dict(line.probe_positions if probing else line.knot_positions) if with_knots else {}
        positions |= {cut: line.position(cut) for cut in cuts if cut not in positions}
        self.cuts = sorted(positions)
        cells = np.array([positions[cut][0] for cut in self.cuts], dtype=np.int64)
        shares = np.array([positions[cut][1] for cut in self.cuts])
        # A segment is the intersection of an atom and a cell. A cut ends an atom; the end of a cell does not. So the
        # number of a segment is the number of its atom plus the number of its cell.
        cuts_in_cell = np.bincount(cells, minlength=line.grid.cells)
        self._cell = np.repeat(np.arange(line.grid.cells), cuts_in_cell + 1)
        self._atom = np.arange(len(self._cell)) - self._cell
        last = np.cumsum(cuts_in_cell + 1) - 1
        ends, starts = np.ones(len(self._cell)), np.zeros(len(self._cell))
        is_cut = np.ones(len(self._cell), dtype=bool)
        is_cut[last] = False
        ends[is_cut] = shares
        starts[1:][is_cut[:-1]] = shares
        mass = ends - starts
        # A segment that can hold a value never has mass 0, nor the rest of its cell mass 1: bounds rely on it.
        for segment in np.flatnonzero(mass < LEAST_SHARE).tolist():
            mass[segment] = LEAST_SHARE if self.line.holds(*self._ends(segment)) else 0.0
        self._mass = mass
        self._whole = np.bincount(self._cell, self._mass)
        self._can_hold_value = np.bincount(self._atom, self._mass, minlength=len(self.cuts) + 1) > 0

    def within(self, ranges: Ranges) -> Truth:
        """The atoms in which a comparison is true and those in which it is false."""
        true = np.zeros(len(self.cuts) + 1, dtype=bool)
        for piece in ranges.true:
            true[self._between(piece)] = True
        false = ~true if ranges.false_elsewhere else np.zeros_like(true)
        return Truth(self._with_null(true, ranges.of_null is True), self._with_null(false, ranges.of_null is False))

    def by_knots(self, truth: Truth) -> Truth:
        """The same for a predicate whose ``truth`` is known at the knots. Each stands for the values up to the next.

        If the line was cut at its probes, the truth is that at the probes.
        """
        owners, point_count = self._owners, len(self._points)
        return Truth(
            self._with_null(truth.true[owners], bool(truth.true[point_count:].any())),
            self._with_null(truth.false[owners], bool(truth.false[point_count:].any())),
        )

    @cached_property
    def _owners(self) -> IntArray:
        """The knot or probe that stands for each atom."""
        return np.array([0, *(max(0, bisect_right(self._points, key) - 1) for key, _ in self.cuts)])

    def null(self) -> Truth:
        """IS NULL."""
        nowhere = np.zeros(len(self.cuts) + 1, dtype=bool)
        return Truth(self._with_null(nowhere, True), self._with_null(~nowhere, False))

    def weights(self, selected: BoolArray) -> FloatArray:
        """For every code of the column, NULL included, the share of it in the selected atoms."""
        cells = np.bincount(self._cell, self._mass * self.with_empty_atoms(selected)[self._atom]) / self._whole
        return np.append(cells, float(selected[-1])) if self.line.has_null else cells

    def most_rows(self, selected: BoolArray) -> int | None:
        """The largest number of rows that the selected atoms of a unique column can have; None if there is no limit."""
        if len(self.cuts) > MOST_CUTS:
            return None
        ends = [None, *self.cuts, None]
        atoms = np.flatnonzero(self.with_empty_atoms(selected)).tolist()
        allows_null = self.line.has_null and bool(selected[-1])
        return most_values(self.line.scale, [ends[atom : atom + 2] for atom in atoms], allows_null)

    def with_empty_atoms(self, selected: BoolArray) -> BoolArray:
        """The same set with an element for every atom, those that can hold no value included, and none for NULL."""
        all_atoms = np.zeros(len(self._can_hold_value), dtype=bool)
        all_atoms[self._can_hold_value] = selected[: np.count_nonzero(self._can_hold_value)]
        return all_atoms

    def pieces(self, selected: BoolArray, cell: int) -> list[Piece]:
        """The parts of a cell that are in ``selected`` atoms, a set made by :meth:`with_empty_atoms`."""
        first, end = np.searchsorted(self._cell, (cell, cell + 1)).tolist()
        line, pieces = self.line, []
        for segment in range(first, end):
            atom = int(self._atom[segment])
            if not selected[atom] or not self._mass[segment] > 0:
                continue
            low, high = self._ends(segment)
            if low < high:
                shares = line.below(low[0])[1], line.below(high[0])[1]
                probe = low[0]
                if self._points is not line.keys:
                    probe = line.probes[self._points[bisect_right(self._points, probe) - 1]]
                pieces.append(Piece(float(self._mass[segment]), low, high, *shares, probe))
        return pieces

    def _ends(self, segment: int) -> tuple[Cut, Cut]:
        """The cuts that a segment lies between, within its cell."""
        atom = int(self._atom[segment])
        low, high = self.line.ends_of(int(self._cell[segment]))
        if atom:
            low = max(self.cuts[atom - 1], low)
        return low, min(self.cuts[atom], high) if atom < len(self.cuts) else high

    def share(self, selected: BoolArray) -> float:
        """The share of the column's distinct values in the selected atoms."""
        grid = self.line.grid
        return float(self.weights(selected)[: grid.cells] @ np.array(grid.distinct, dtype=np.float64) / grid.values)

    def _between(self, ends: Range) -> slice:
        low, high = ends
        first = 0 if low is None else bisect_left(self.cuts, low) + 1
        end = len(self.cuts) + 1 if high is None else bisect_left(self.cuts, high) + 1
        return slice(first, end)

    def _with_null(self, atoms: BoolArray, null_value: bool) -> BoolArray:
        atoms_with_values = atoms[self._can_hold_value]
        return np.append(atoms_with_values, null_value) if self.line.has_null else atoms_with_values


def _is_infinite(key: Key) -> bool:
    return isinstance(key, float) and math.isinf(key)
