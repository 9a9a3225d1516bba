"""How the rows that a condition keeps are spread over the values of some columns."""

from __future__ import annotations

from dataclasses import dataclass

from countless.arrays import FloatArray, IntArray
from countless.estimator.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Joint:
    """Combinations of codes of some columns, and how many rows of a condition have each.

    ``columns`` are places in the schema; ``codes`` (combinations, columns) rise from row to row, and combinations that
    no row is believed to have are left out. ``rows`` add up to those of ``total``, the condition's own count. Before
    they were made to, their sum was off from it by the factor ``1 + disagreement``: which columns are asked together
    decides which conditionals of the model are used, and these need not agree. ``exact`` says that nothing was sampled.
    """

    columns: tuple[int, ...]
    codes: IntArray
    rows: FloatArray
    total: Estimate
    disagreement: float
    exact: bool
