"""Values drawn within the cells of grids, where a condition allows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.estimator.answers.distributions.values import Values
from countless.query.grids.line import Piece
from countless.query.grids.survey import CellParts
from countless.query.row_check import RowCheck

TRIES = 8, 32  # values that are drawn in turn for a row whose values fail the condition
TOLD = 0.0  # how far on the way is the value at which a piece was judged
Texts = list[str | None]


class CellDraws:
    """Draws the values of rows whose codes and boxes are known.

    ``cells`` has for each box what it allows of the cells, by column. Comparisons with constants are obeyed exactly.
    What is known only of some values of a cell, as of ``hour(ts) = 3``, is a guess about those between.
    """

    def __init__(
        self, schema: Schema, cells: Sequence[Mapping[int, CellParts]], codes: Sequence[IntArray], boxes: IntArray
    ) -> None:
        self._values = [Values(column) for column in schema.coded]
        self._nulls = [column.null for column in schema.coded]
        self._cells, self._codes, self._boxes = cells, codes, boxes
        self._filtered = sorted({index for own in cells for index in own})
        self._pieces: dict[tuple[int, int, int], tuple[list[Piece], FloatArray]] = {}

    def values(self, index: int, rng: np.random.Generator) -> Texts:
        """A value of a column for each row."""
        codes = self._codes[index]
        if index not in self._filtered:
            return self._values[index].draw(codes, rng)
        points = rng.random((len(codes), 2)).tolist()
        return [self._value(index, row, *ways) for row, ways in enumerate(points)]

    def settle(
        self, check: RowCheck, columns: list[Texts], cut: Mapping[int, BoolArray], rng: np.random.Generator
    ) -> BoolArray:
        """Which rows satisfy the condition. Rows that fail get other values in the same cells, as often as ``TRIES``.

        The last value that is tried is one at which the condition was found to hold.
        """
        allowed = check.allows({index: columns[index] for index in check.columns}, cut, len(columns[0]))
        for tries in TRIES if self._filtered else ():
            failed = np.flatnonzero(~allowed)
            if not len(failed):
                break
            rows = np.repeat(failed, tries)
            tried = {index: [columns[index][row] for row in rows] for index in check.columns}
            for index in self._filtered:
                points = rng.random((len(rows), 2))
                if tries == TRIES[-1]:
                    points[tries - 1 :: tries, 1] = TOLD
                tried[index] = [
                    self._value(index, row, *ways) for row, ways in zip(rows.tolist(), points.tolist(), strict=True)
                ]
            own = {index: flags[rows] for index, flags in cut.items()}
            good = check.allows(tried, own, len(rows)).reshape(len(failed), tries)
            first = good.argmax(axis=1)
            for place in np.flatnonzero(good.any(axis=1)).tolist():
                for index in self._filtered:
                    columns[index][failed[place]] = tried[index][place * tries + first[place]]
                allowed[failed[place]] = True
        return allowed

    def _value(self, index: int, row: int, which: float, way: float) -> str | None:
        """A value of the row's cell: in which of its pieces, and how far on the way through it."""
        values, cell, box = self._values[index], int(self._codes[index][row]), int(self._boxes[row])
        if cell == self._nulls[index] or index not in self._cells[box]:
            return values.plausible_value_at(cell, way)
        pieces, shares = self._allowed(box, index, cell)
        if not pieces:
            return values.plausible_value_at(cell, way)
        piece = pieces[min(int(np.searchsorted(shares, which * shares[-1], side="right")), len(pieces) - 1)]
        key = piece.told if way == TOLD else values.key(cell, piece.start + way * (piece.end - piece.start))
        return values.between(piece.low, piece.high, key)

    def _allowed(self, box: int, index: int, cell: int) -> tuple[list[Piece], FloatArray]:
        """The pieces of a cell that hold a value such as the column has, and the sums of their masses."""
        found = self._pieces.get((box, index, cell))
        if found is None:
            between = self._values[index].between
            pieces = [
                piece
                for piece in self._cells[box][index].pieces(cell)
                if between(piece.low, piece.high, piece.told) is not None
            ]
            found = self._pieces[box, index, cell] = pieces, np.cumsum([piece.mass for piece in pieces])
        return found
