"""Grid construction in DuckDB, without loading a column's values into Python.

Cells hold about the same number of rows. A value with more rows than that is a cell of its own, and so is a value that
is not finite, such as infinity or NaN. The values between two of these are cut into pieces of equal mass.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

from countless.data.columns.grids.granularity import Granularity
from countless.data.columns.grids.granularity_search import read_granularity
from countless.data.columns.grids.grid import Grid
from countless.data.columns.schema import Column
from countless.data.columns.types import FLOATS, quote_identifier, sql_literal, sql_value
from countless.data.sources.source import Source

CELLS = 1_024  # about this many cells: two digits of 32
PARTS = 8  # a cell's knots cut it into this many parts of about equal mass
SAMPLED_VALUES = 200_000  # about this many values of a larger table are enough to find the granularity
ROWS_PER_CELL = 8  # at least, on average: a model learns nothing from fewer

# In the order of the values: the rows below each value, and how many values that are alone in a cell are at or below
# it. The values between two of those are a run. A run is cut by its rows into pieces, which are the cells, and a cell
# into parts. A value falls where its middle row falls, so that the masses of pieces differ by one value at most.
KNOTS = """
WITH line AS (
    SELECT value, n, alone, sum(n) OVER upward - n AS below, sum(alone::INTEGER) OVER upward AS run
    FROM (SELECT value, n, n > {mass} OR {not_finite} AS alone FROM {values} WHERE value IS NOT NULL)
    WINDOW upward AS (ORDER BY value ROWS UNBOUNDED PRECEDING)
), runs AS (
    SELECT *, sum(n) OVER run AS run_mass, below - min(below) OVER run AS run_below
    FROM line WINDOW run AS (PARTITION BY run, alone)
), pieces AS (
    SELECT *, floor((run_below + n / 2) * greatest(1, round(run_mass / {mass})) / run_mass)::INTEGER AS piece FROM runs
), cells AS (
    SELECT *, sum(n) OVER cell AS mass, below - min(below) OVER cell AS cell_below,
        max(below) OVER cell - min(below) OVER cell AS below_greatest
    FROM pieces WINDOW cell AS (PARTITION BY run, alone, piece)
)
SELECT
    run, alone, piece, floor((cell_below + n / 2) * {parts} / mass)::INTEGER AS part,
    CAST(min(value) AS VARCHAR), CAST(max(value) AS VARCHAR),
    min(cell_below) / greatest(1, any_value(below_greatest)),
    count(*)
FROM cells
GROUP BY run, alone, piece, part
ORDER BY run, NOT alone, piece, part
"""


def read_grid(source: Source, name: str, kind: str, most_cells: int = CELLS) -> Column:
    """The column ``name``, read as ``kind``, as a grid of about ``most_cells`` cells; fewer if it has few rows."""
    values = quote_identifier(f"{source.name}_values")
    column = sql_value(name, kind)
    source.run(f"CREATE TEMP TABLE {values} AS SELECT {column} AS value, count(*) AS n FROM {source.table} GROUP BY 1")
    try:
        return grid_of(source, values, name, kind, most_cells)
    finally:
        source.run(f"DROP TABLE {values}")


def grid_of(source: Source, values: str, name: str, kind: str, most_cells: int) -> Column:
    """A column as a grid of about ``most_cells`` cells; the table ``values`` has the rows ``n`` of each and of NULL."""
    ((rows, most, nulls),) = source.rows(
        "SELECT coalesce(sum(n) FILTER (value IS NOT NULL), 0), max(n) FILTER (value IS NOT NULL), "
        f"count(*) FILTER (value IS NULL) FROM {values}"
    )
    mass = int(rows) / max(1, min(most_cells, int(rows) // ROWS_PER_CELL))
    column = cut_into_cells(source, values, name, kind, mass)
    assert column.grid is not None
    granularity = granularity_of(source, values, kind, mass)
    grid = replace(column.grid, granularity=granularity, unique=most == 1)
    return replace(column, has_null=nulls > 0, radices=(), grid=grid)


def granularity_of(source: Source, values: str, kind: str, mass: float | None = None) -> Granularity | None:
    """The granularity of ``values``, except those of more than ``mass`` rows, which have cells of their own."""
    light = "" if mass is None else f"AND n <= {mass!r}"
    ((count,),) = source.rows(f"SELECT count(*) FROM {values}")
    sampled = f"hash(value) % {int(count) // SAMPLED_VALUES + 1} = 0"
    condition = f"value IS NOT NULL {light} AND NOT ({_is_not_finite(kind)}) AND {sampled}"
    return read_granularity(source, f"(SELECT value, n FROM {values} WHERE {condition})", kind)


def cut_into_cells(source: Source, values: str, name: str, kind: str, mass: float) -> Column:
    """A column as a grid with about ``mass`` rows per cell; the table ``values`` has the rows ``n`` of each value."""
    parts = source.rows(
        KNOTS.format(values=values, mass=f"{mass!r}::DOUBLE", not_finite=_is_not_finite(kind), parts=PARTS)
    )
    return _column(name, kind, parts)


def cell_code(column: Column, value: str) -> str:
    """SQL for the code of ``value``, an SQL expression. It finds the cell of each row by bisection.

    Unlike a join with the values, this keeps the rows in order and needs no memory.
    """
    assert column.grid is not None
    least = [sql_literal(column.values[start], column.type) for start in column.grid.starts]

    def bisection(first: int, end: int) -> str:
        if end - first == 1:
            return str(first)
        middle = (first + end) // 2
        return f"CASE WHEN {value} < {least[middle]} THEN {bisection(first, middle)} ELSE {bisection(middle, end)} END"

    return f"CASE WHEN {value} IS NULL THEN {column.grid.cells} ELSE {bisection(0, column.grid.cells)} END"


def _is_not_finite(kind: str) -> str:
    """SQL that is true of infinite values and NaN."""
    if kind in FLOATS or kind in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        return "NOT isfinite(value)"
    return "NOT isfinite(CAST(value AS TIMESTAMP))" if kind.startswith("TIMESTAMP_") else "FALSE"


def _column(name: str, kind: str, parts: list[tuple[Any, ...]]) -> Column:
    """The column with the knots of ``parts``, the result rows of KNOTS."""
    knots: list[str] = []
    starts: list[int] = []
    shares: list[float] = []
    distinct: list[int] = []
    for _, group in groupby(parts, key=lambda part: part[:3]):
        cell = list(group)
        starts.append(len(knots))
        distinct.append(sum(int(part[7]) for part in cell))
        knots.extend(str(part[4]) for part in cell)
        shares.extend(float(part[6]) for part in cell)
        greatest = str(cell[-1][5])
        if greatest != knots[-1]:
            knots.append(greatest)
            shares.append(1.0)
    return Column(name, kind, tuple(knots), False, grid=Grid(tuple(starts), tuple(shares), tuple(distinct)))
