"""A grid for a column with many distinct values: cells of neighbouring values with about equal row counts."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from countless.cached_property import cached_property
from countless.data.columns.grids.granularity import Granularity
from countless.errors import ModelFileError


@dataclass(frozen=True)
class Grid:
    """The cells of a column, and how its values are distributed within them.

    The column stores only some of its values, the *knots*: in each cell the least value, some that cut its rows into
    equal parts, and the greatest. ``starts`` has the index of each cell's first knot. ``shares`` has for each knot the
    share of its cell's rows below it, scaled so that the greatest has 1; between two knots one interpolates.
    ``distinct`` has each cell's number of values. Values that share a cell have this ``granularity``, if there is one.
    In a ``unique`` column no value occurs twice, NULL apart.

    >>> grid = Grid(starts=(0, 3, 4), shares=(0.0, 0.5, 1.0, 0.0, 0.0, 1.0), distinct=(9, 1, 4))
    >>> grid.cells, grid.values, grid.cell_of(1), grid.cell_of(3)
    (3, 14, 0, 1)
    """

    starts: tuple[int, ...]
    shares: tuple[float, ...]
    distinct: tuple[int, ...]
    granularity: Granularity | None = None
    unique: bool = False

    @property
    def cells(self) -> int:
        """Number of cells; each is a code."""
        return len(self.starts)

    @cached_property
    def values(self) -> int:
        """Number of distinct values of the column."""
        return sum(self.distinct)

    def cell_of(self, knot: int) -> int:
        """The cell that ``knot`` is in."""
        return bisect_right(self.starts, knot) - 1

    def knots(self, cell: int) -> range:
        """The indexes of the knots of ``cell``."""
        end = self.starts[cell + 1] if cell + 1 < self.cells else len(self.shares)
        return range(self.starts[cell], end)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the model file."""
        data: dict[str, Any] = {
            "starts": list(self.starts),
            "shares": list(self.shares),
            "distinct": list(self.distinct),
        }
        if self.granularity is not None:
            data["granularity"] = self.granularity.to_json()
        return data | {"unique": True} if self.unique else data

    @classmethod
    def from_json(cls, data: Any, knots: int) -> Grid:
        """The grid with this many knots that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        granularity = Granularity.from_json(data["granularity"]) if "granularity" in data else None
        starts, distinct = tuple(data["starts"]), tuple(data["distinct"])
        grid = cls(starts, tuple(map(float, data["shares"])), distinct, granularity, data.get("unique", False))
        if not grid._is_consistent(knots):
            raise ModelFileError("the schema is damaged (the grid of a column is inconsistent): fit it again")
        return grid

    def _is_consistent(self, knots: int) -> bool:
        """Whether the fields fit each other and the column's number of knots."""
        starts, ends = self.starts, (*self.starts[1:], knots)
        return (
            len(self.shares) == knots
            and len(self.distinct) == len(starts) > 0
            and starts[0] == 0
            and all(start < end for start, end in zip(starts, ends, strict=True))
            and all(
                _is_rising(self.shares[start:end]) and distinct >= end - start and (distinct == 1) == (end - start == 1)
                for start, end, distinct in zip(starts, ends, self.distinct, strict=True)
            )
        )


def _is_rising(shares: tuple[float, ...]) -> bool:
    """Whether the shares of a cell rise from 0 to 1; a knot alone in its cell has 0."""
    if not all(map(math.isfinite, shares)) or shares[0] != 0:
        return False
    return len(shares) == 1 or (shares[-1] == 1 and all(low <= high for low, high in pairwise(shares)))
