"""Per-column histograms, multiplied: what most query optimizers do."""

from __future__ import annotations

import math

import numpy as np

from countless.baselines.base import Baseline
from countless.data.table import Table
from countless.region import Box, Region


class Independence(Baseline):
    """The exact frequency of every value of every column, multiplied as if columns knew nothing of each other.

    It has no error bar: the bounds are none and all of the rows.
    """

    method = "independence"

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        sizes = table.schema.sizes
        self._frequencies = [np.bincount(codes, minlength=sizes[p]) / table.rows for p, codes in enumerate(table.codes)]

    def _answer(self, region: Region) -> tuple[float, float, float]:
        return min(1.0, sum(self._box(box) for box in region.boxes)), 0.0, 1.0

    def _box(self, box: Box) -> float:
        factors = (
            float(item.constraint.weights(item.constraint.start()) @ self._frequencies[item.positions[0]])
            for item in box.filters
        )
        return math.prod(factors)
