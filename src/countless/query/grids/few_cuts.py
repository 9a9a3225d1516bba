"""Atoms of a line with few cuts: the results of :class:`.line.Atoms`, without an array of all cells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np

from countless.arrays import FloatArray
from countless.query.grids.line import LEAST_SHARE, Line, most_values
from countless.query.grids.ranges import Cut, Ranges


class FewAtoms:
    """The atoms between a few ``cuts``. A set of atoms is a list with an element for each, in order.

    Most cells have no cut in them, and belong to one atom. For all other cells the masses of their segments are stored.
    """

    def __init__(self, line: Line, cuts: Collection[Cut]) -> None:
        self._line = line
        self._cuts = sorted(cuts)
        positions = [line.position(cut) for cut in self._cuts]
        # Atom k reaches from cell k of this list to cell k + 1.
        self._cells = [-1, *(cell for cell, _ in positions), line.grid.cells]
        self._masses: dict[int, list[tuple[int, float]]] = {}  # for each cell with cuts: its atoms and their masses
        for atom, (cell, share) in enumerate(positions):
            segments = self._masses.setdefault(cell, [])
            start = positions[atom - 1][1] if segments else 0.0
            segments.append((atom, self._mass(cell, atom, share - start)))
            if self._cells[atom + 2] != cell:
                segments.append((atom + 1, self._mass(cell, atom + 1, 1.0 - share)))
        self.can_hold_value = [end - start > 1 for start, end in zip(self._cells, self._cells[1:], strict=False)]
        for segments in self._masses.values():
            for atom, mass in segments:
                self.can_hold_value[atom] |= mass > 0

    def _mass(self, cell: int, atom: int, mass: float) -> float:
        """The mass of a segment: never 0 if it can hold a value, so that the rest of its cell is never all of it."""
        if mass >= LEAST_SHARE:
            return mass
        low, high = self._line.ends_of(cell)
        if atom:
            low = max(self._cuts[atom - 1], low)
        if atom < len(self._cuts):
            high = min(self._cuts[atom], high)
        return LEAST_SHARE if self._line.holds(low, high) else 0.0

    def within(self, ranges: Ranges) -> list[bool]:
        """The atoms in which a comparison is true."""
        true = [False] * len(self.can_hold_value)
        for low, high in ranges.true:
            first = 0 if low is None else bisect_left(self._cuts, low) + 1
            end = len(true) if high is None else bisect_left(self._cuts, high) + 1
            true[first:end] = [True] * (end - first)
        return true

    def most_rows(self, selected: Sequence[bool], allows_null: bool) -> int | None:
        """The largest number of rows that the selected atoms of a unique column can have; None if there is no limit."""
        ends = [None, *self._cuts, None]
        return most_values(
            self._line.scale, [ends[k : k + 2] for k, is_selected in enumerate(selected) if is_selected], allows_null
        )

    def weights(self, selected: Sequence[bool], allows_null: bool) -> FloatArray:
        """For every code of the column, NULL included, the share of it in the selected atoms."""
        cells: FloatArray = np.zeros(self._line.grid.cells + self._line.has_null)
        for atom, is_selected in enumerate(selected):
            if is_selected:
                cells[self._cells[atom] + 1 : self._cells[atom + 1]] = 1.0
        for cell, segments in self._masses.items():
            selected_mass = sum(mass for atom, mass in segments if selected[atom])
            cells[cell] = selected_mass / sum(mass for _, mass in segments)
        if self._line.has_null:
            cells[-1] = float(allows_null)
        return cells
