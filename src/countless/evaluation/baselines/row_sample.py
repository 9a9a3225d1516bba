"""The baseline of a scanned sample of encoded rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from countless.data.columns.digits import from_digits
from countless.data.encoding.table import Table
from countless.evaluation.baselines.base import EncodedBaseline, stored_bytes
from countless.region import Region
from countless.workload import count_codes

Z90 = 1.6448536269514722  # two-sided 90% of a normal distribution


class RowSample(EncodedBaseline):
    """The share of matching rows in a sample, with Wilson's interval around it.

    It samples the encoded table. For a column with a grid it has each row's cell, not its value, so a row counts by the
    share of its cell that matches. For a range that is more exact than a sample of values; it is less exact for several
    filters that split the rows of one cell.
    """

    method = "row-sample"

    def __init__(self, table: Table, share: float = 0.01, seed: int = 0) -> None:
        super().__init__(table)
        size = max(1, round(table.rows * share))
        sampled_rows = np.sort(np.random.default_rng(seed).choice(table.rows, size=size, replace=False))
        schema = replace(table.schema, rows=size, columns=table.schema.coded)
        self._sample = Table(schema, tuple(codes[sampled_rows] for codes in table.codes))
        self.bytes = sum(_sampled_bytes(self._sample, index) for index in range(len(schema.coded)))

    def _answer(self, region: Region) -> tuple[float, float, float]:
        return wilson(count_codes(self._sample, region) / self._sample.rows, self._sample.rows)


def _sampled_bytes(sample: Table, index: int) -> int:
    """The bytes of one column's values; for a grid, of the average knot. NULL has none."""
    column = sample.schema.coded[index]
    lengths = stored_bytes(column)
    if column.grid is not None:
        return round(sample.rows * float(lengths.mean())) if len(lengths) else 0
    digits = tuple(sample.codes[position] for position in sample.schema.positions(index))
    return int(np.append(lengths, 0)[from_digits(digits, column.radices)].sum())


def wilson(share: float, size: int) -> tuple[float, float, float]:
    """A share of ``size`` sampled rows, and the bounds of Wilson's interval at 90%."""
    z2 = Z90 * Z90 / size
    center = (share + z2 / 2) / (1 + z2)
    half_width = math.sqrt(share * (1 - share) * z2 + z2 * z2 / 4) / (1 + z2)
    return share, max(0.0, center - half_width), min(1.0, center + half_width)
