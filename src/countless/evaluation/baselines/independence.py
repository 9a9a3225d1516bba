"""The baseline of per-column histograms, multiplied under the independence assumption."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import FloatArray
from countless.data.columns.digits import from_digits, to_digits
from countless.data.encoding.table import Table
from countless.evaluation.baselines.base import EncodedBaseline, stored_bytes
from countless.region import Box, Region
from countless.workload import accepted


class Independence(EncodedBaseline):
    """The exact frequency of every value of every column, multiplied as if columns were independent.

    For a column with a grid it has the frequencies of the cells, and interpolates within them as the model does.
    It has no error bar: the bounds are 0 and all rows.
    """

    method = "independence"

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._columns: dict[int, tuple[FloatArray, tuple[NDArray[Any], ...]]] = {}  # by a column's first position
        for positions, column in zip(table.schema.spans, table.schema.modelled, strict=True):
            codes = from_digits(tuple(table.codes[position] for position in positions), column.radices)
            frequencies = np.bincount(codes, minlength=column.size) / table.rows
            self._columns[positions[0]] = frequencies, to_digits(np.arange(column.size), column.radices)
        values = sum(int(stored_bytes(column).sum()) for column in table.schema.coded)
        self.bytes = values + sum(frequencies.nbytes for frequencies, _ in self._columns.values())

    def _answer(self, region: Region) -> tuple[float, float, float]:
        return min(1.0, sum(self._box(box) for box in region.boxes)), 0.0, 1.0

    def _box(self, box: Box) -> float:
        share = 1.0
        for box_filter in box.filters:
            frequencies, digits = self._columns[box_filter.positions[0]]
            share *= float(frequencies @ accepted(digits, box_filter.constraint))
        return share
