"""The dimensions along which tables and questions grow, and the sizes to measure at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from countless._version import __version__
from countless.options import MAX_DISTINCT, Network
from countless_lab.growth.synthetic import Synthetic, small_columns

DIMENSIONS = ("columns", "distinct", "filters", "rows", "batch")
REPEATS = 3  # the latency of a query is the smallest of this many


@dataclass(frozen=True)
class FitSettings:
    """A table and how it is fitted: points that have the same share one model."""

    table: Synthetic
    budget: float
    network: Network
    max_distinct: int = MAX_DISTINCT


@dataclass(frozen=True)
class GrowthPoint:
    """One measurement: a model, and the questions it is asked.

    The columns in ``always`` are part of every question. With ``batch``, this many are also asked in one call.
    """

    dimension: str
    value: int
    fit: FitSettings
    queries: int
    filters: int
    always: tuple[int, ...] = ()
    batch: int | None = None
    repeats: int = REPEATS

    @property
    def name(self) -> str:
        """The name of the point's files."""
        return f"{self.dimension}-{self.value}"

    @property
    def settings(self) -> dict[str, Any]:
        """All that the figures depend on, except the machine. Points with other settings are measured anew."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists in place of tuples, as JSON reads them
        return {**record, "library": __version__}


@dataclass(frozen=True)
class GrowthSizes:
    """The sizes along every dimension, and the usual sizes of the other dimensions."""

    columns: tuple[int, ...] = (20, 50, 100, 200)
    distinct: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    filters: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 50)
    rows: tuple[int, ...] = (10**5, 10**6, 10**7)
    batch: tuple[int, ...] = (1, 10, 100, 1_000)
    usual_columns: int = 20
    usual_filters: int = 8
    usual_rows: int = 10**5
    filters_columns: int = 60
    distinct_columns: int = 10
    distinct_filters: int = 4
    distinct_rows: int = 2_500_000  # more than two rows a value: below that a column is a grid for another reason
    budget: float = 15.0
    queries: int = 200
    seed: int = 0
    network: Network = field(default_factory=Network)

    def up_to(self, rows: int) -> GrowthSizes:
        """The same sizes, limited to tables of ``rows`` rows and to the values that such a table can hold."""
        distinct_rows = min(self.distinct_rows, rows)
        return replace(
            self,
            rows=tuple(value for value in self.rows if value <= rows) or (rows,),
            usual_rows=min(self.usual_rows, rows),
            distinct_rows=distinct_rows,
            distinct=tuple(value for value in self.distinct if 2 * value <= distinct_rows),
        )

    def points(self) -> list[GrowthPoint]:
        """Every point, dimension by dimension."""
        return [
            point(value) for name, point in self._points_along().items() for value in sorted(set(getattr(self, name)))
        ]

    def _points_along(self) -> dict[str, Callable[[int], GrowthPoint]]:
        return {
            "columns": lambda value: self._point("columns", value, columns=value),
            "distinct": self._distinct_point,
            "filters": lambda value: self._point("filters", value, columns=self.filters_columns, filters=value),
            "rows": lambda value: self._point("rows", value, rows=value),
            "batch": lambda value: self._point("batch", value, queries=max(self.batch), batch=value),
        }

    def _point(
        self,
        dimension: str,
        value: int,
        columns: int | None = None,
        rows: int | None = None,
        filters: int | None = None,
        queries: int | None = None,
        batch: int | None = None,
    ) -> GrowthPoint:
        """A point with the usual table and question, except for the arguments given."""
        table = Synthetic(rows or self.usual_rows, small_columns(columns or self.usual_columns), self.seed)
        fit = FitSettings(table, self.budget, self.network)
        return GrowthPoint(dimension, value, fit, queries or self.queries, filters or self.usual_filters, batch=batch)

    def _distinct_point(self, value: int) -> GrowthPoint:
        """A table whose first column has ``value`` values; every question filters it."""
        sizes = (value, *small_columns(self.distinct_columns - 1))
        fit = FitSettings(Synthetic(self.distinct_rows, sizes, self.seed), self.budget, self.network)
        return GrowthPoint("distinct", value, fit, self.queries, self.distinct_filters, always=(0,))
