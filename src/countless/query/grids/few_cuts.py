"""A grid's line that is cut at a few places: what :class:`.line.Atoms` finds, without an array of all its cells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np

from countless.arrays import FloatArray
from countless.query.grids.line import BARELY, Line, most_values
from countless.query.grids.ranges import Cut, Ranges


class FewAtoms:
    """The atoms between a few ``cuts``. A set of atoms is a list with a place for each, in order.

    Most cells have no cut in them, and are in one atom whole. Of the others, the masses of their segments are kept.
    """

    def __init__(self, line: Line, cuts: Collection[Cut]) -> None:
        self._line = line
        self._cuts = sorted(cuts)
        places = [line.place(cut) for cut in self._cuts]
        self._cells = [-1, *(cell for cell, _ in places), line.grid.cells]  # atom k is between those at k and k + 1
        self._masses: dict[int, list[tuple[int, float]]] = {}  # of each cell with cuts: its atoms, and their masses
        for atom, (cell, share) in enumerate(places):
            segments = self._masses.setdefault(cell, [])
            start = places[atom - 1][1] if segments else 0.0
            segments.append((atom, self._mass(cell, atom, share - start)))
            if self._cells[atom + 2] != cell:
                segments.append((atom + 1, self._mass(cell, atom + 1, 1.0 - share)))
        self.alive = [end - start > 1 for start, end in zip(self._cells, self._cells[1:], strict=False)]
        for segments in self._masses.values():
            for atom, mass in segments:
                self.alive[atom] |= mass > 0

    def _mass(self, cell: int, atom: int, mass: float) -> float:
        """What can hold a value is never rounded to nothing, nor the rest of its cell to the whole."""
        if mass >= BARELY:
            return mass
        low, high = self._line.ends_of(cell)
        if atom:
            low = max(self._cuts[atom - 1], low)
        if atom < len(self._cuts):
            high = min(self._cuts[atom], high)
        return BARELY if self._line.holds(low, high) else 0.0

    def within(self, ranges: Ranges) -> list[bool]:
        """The atoms in which a comparison is true."""
        true = [False] * len(self.alive)
        for low, high in ranges.true:
            first = 0 if low is None else bisect_left(self._cuts, low) + 1
            end = len(true) if high is None else bisect_left(self._cuts, high) + 1
            true[first:end] = [True] * (end - first)
        return true

    def most_rows(self, chosen: Sequence[bool], null: bool) -> int | None:
        """How many rows of a unique column the chosen atoms can have; None if any number."""
        ends = [None, *self._cuts, None]
        return most_values(self._line.scale, [ends[k : k + 2] for k, own in enumerate(chosen) if own], null)

    def weights(self, chosen: Sequence[bool], null: bool) -> FloatArray:
        """For every code of the column, NULL included, how much of it the chosen atoms make up."""
        cells: FloatArray = np.zeros(self._line.grid.cells + self._line.has_null)
        for atom, own in enumerate(chosen):
            if own:
                cells[self._cells[atom] + 1 : self._cells[atom + 1]] = 1.0
        for cell, segments in self._masses.items():
            kept = sum(mass for atom, mass in segments if chosen[atom])
            cells[cell] = kept / sum(mass for _, mass in segments)
        if self._line.has_null:
            cells[-1] = float(null)
        return cells
