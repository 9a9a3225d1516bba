"""Random values within the cells of grids, in the parts of cells that a condition allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.estimator.answers.distributions.values import Values
from countless.query.grids.line import Piece
from countless.query.grids.survey import CellParts
from countless.query.row_check import RowCheck

TRIES = 8, 32  # values drawn for a row that fails the condition, in the first attempt and the second
PROBED = 0.0  # stands for the value of a piece at which the condition was evaluated
Texts = list[str | None]


class CellDraws:
    """Draws the values of rows whose codes and boxes are known.

    ``cells`` has for each box the allowed parts of cells, by column. Comparisons with constants are exact. A condition
    such as ``hour(ts) = 3`` was evaluated only at some values of a cell, so the values between these may fail it.
    """

    def __init__(
        self, schema: Schema, cells: Sequence[Mapping[int, CellParts]], codes: Sequence[IntArray], boxes: IntArray
    ) -> None:
        self._values = [Values(column) for column in schema.coded]
        self._nulls = [column.null for column in schema.coded]
        self._cells, self._codes, self._boxes = cells, codes, boxes
        self._filtered = sorted({index for column_cells in cells for index in column_cells})
        self._pieces: dict[tuple[int, int, int], tuple[list[Piece], FloatArray]] = {}

    def values(self, index: int, rng: np.random.Generator) -> Texts:
        """A value of a column for each row."""
        codes = self._codes[index]
        if index not in self._filtered:
            return self._values[index].draw(codes, rng)
        points = rng.random((len(codes), 2)).tolist()
        return [self._value(index, row, *point) for row, point in enumerate(points)]

    def settle(
        self, check: RowCheck, columns: list[Texts], cut: Mapping[int, BoolArray], rng: np.random.Generator
    ) -> BoolArray:
        """Which rows satisfy the condition. Rows that fail get other values in the same cells.

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
                    points[tries - 1 :: tries, 1] = PROBED
                tried[index] = [
                    self._value(index, row, *point) for row, point in zip(rows.tolist(), points.tolist(), strict=True)
                ]
            cut_of_tried = {index: flags[rows] for index, flags in cut.items()}
            passes = check.allows(tried, cut_of_tried, len(rows)).reshape(len(failed), tries)
            first = passes.argmax(axis=1)
            for position in np.flatnonzero(passes.any(axis=1)).tolist():
                for index in self._filtered:
                    columns[index][failed[position]] = tried[index][position * tries + first[position]]
                allowed[failed[position]] = True
        return allowed

    def _value(self, index: int, row: int, piece_share: float, fraction: float) -> str | None:
        """A value of the row's cell: from the piece at ``piece_share`` of all pieces, at a fraction of its length."""
        values, cell, box = self._values[index], int(self._codes[index][row]), int(self._boxes[row])
        if cell == self._nulls[index] or index not in self._cells[box]:
            return values.plausible_value_at(cell, fraction)
        pieces, shares = self._allowed(box, index, cell)
        if not pieces:
            return values.plausible_value_at(cell, fraction)
        piece = pieces[min(int(np.searchsorted(shares, piece_share * shares[-1], side="right")), len(pieces) - 1)]
        key = (
            piece.probe
            if fraction == PROBED
            else values.key_at(cell, piece.start + fraction * (piece.end - piece.start))
        )
        return values.between(piece.low, piece.high, key)

    def _allowed(self, box: int, index: int, cell: int) -> tuple[list[Piece], FloatArray]:
        """The allowed pieces of a cell that have a value of the column's precision, and their cumulative masses."""
        cached = self._pieces.get((box, index, cell))
        if cached is None:
            between = self._values[index].between
            pieces = [
                piece
                for piece in self._cells[box][index].pieces(cell)
                if between(piece.low, piece.high, piece.probe) is not None
            ]
            cached = self._pieces[box, index, cell] = pieces, np.cumsum([piece.mass for piece in pieces])
        return cached
