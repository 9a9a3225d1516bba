"""Schema growth: new rows add values for which the model has no codes yet.

Codes are in the order of the values, so a new value in the middle shifts those after it. The *origin* of a code is its
old code, or NEW. A grid gets new cells for values outside its range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.columns.calendar import MOST_YEARS, YEAR, CalendarPart
from countless.data.columns.digits import DIGITS_FROM, to_digits
from countless.data.columns.grids.grid import Grid
from countless.data.columns.grids.grid_knots import cell_code, cut_into_cells, granularity_of
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn, encode
from countless.data.columns.types import FLOATS, is_signed, quote_identifier, sql_literal
from countless.data.encoding.encoder import CHANGED, calendar_code
from countless.data.encoding.recoding import (
    MISSING,
    Recoded,
    are_alike,
    differs,
    domain_of,
    match_columns,
    other_type,
    read_as,
)
from countless.data.encoding.table import Table
from countless.data.encoding.text_growth import grown_text
from countless.data.sources.csv_files import wrong_separator
from countless.data.sources.source import Source
from countless.errors import DataError, EmptyTableError

NEW = -1  # the origin of a new value's code
MOST_SYMBOLS = 2 * DIGITS_FROM  # to which a column in one position may grow
MOST_GROWTH = 1.5  # of a column in digits: more would give most codes other digits
FIT_AGAIN = "fit the whole table again with countless fit"


@dataclass(frozen=True, eq=False)
class Growth:
    """The schema of a table before and after new rows, and the origins of every modelled column's codes."""

    old: Schema
    schema: Schema
    origins: tuple[IntArray, ...]

    @property
    def new_values(self) -> dict[str, int]:
        """Number of new codes of each column that has any."""
        counts = {
            column.name: int((origin == NEW).sum())
            for column, origin in zip(self.schema.coded, self.origins[: len(self.schema.coded)], strict=True)
        }
        return {name: count for name, count in counts.items() if count}

    def codes(self, index: int) -> IntArray:
        """The new code for each old code of the modelled column at ``index``."""
        origin = self.origins[index]
        new_codes = np.flatnonzero(origin != NEW)  # of old values
        codes = np.empty(self.old.modelled[index].size, dtype=np.int64)
        codes[origin[new_codes]] = new_codes
        return codes

    def moved(self, symbols: IntArray) -> IntArray:
        """The symbols (rows, positions) in the new schema of rows that have these ``symbols`` in the old one."""
        moved = np.empty((len(symbols), len(self.schema.sizes)), dtype=np.int64)
        for index, (before, after) in enumerate(zip(self.old.modelled, self.schema.modelled, strict=True)):
            codes = np.ravel_multi_index(tuple(symbols[:, self.old.spans[index]].T), before.radices)
            digits = to_digits(self.codes(index)[codes], after.radices)
            for position, digit in zip(self.schema.spans[index], digits, strict=True):
                moved[:, position] = digit
        return moved


def conformed(source: Source, schema: Schema, strict: bool = True) -> Source:
    """The rows with the model's columns, under its names and in its types, in a temporary table.

    A missing column, or a value that the column's type cannot hold, is an error; unless ``strict``, such a value is
    NULL.
    """
    types = dict(source.columns())
    columns = [(column.name, column.type) for column in schema.columns]
    names = match_columns(list(types), [name for name, _ in columns])
    if missing := [name for index, (name, _) in enumerate(columns) if index not in names]:
        listed, hint = ", ".join(missing[:5]), None if source.csv is None else wrong_separator(source)
        raise DataError(
            f"the rows lack the model's columns {listed}: {hint or 'give every column that it was fitted on'}"
        )
    selected, unreadable = [], []
    for index, (name, kind) in enumerate(columns):
        raw = f"rows.{quote_identifier(names[index])}"
        value = read_as(raw, types[names[index]], kind)
        selected.append(f"{value} AS {quote_identifier(name)}")
        is_changed = differs(raw, types[names[index]], value, kind)
        unreadable.append(f"any_value({raw}) FILTER ({raw} IS NOT NULL AND ({value} IS NULL OR {is_changed}))")
    count, *examples = source.rows(f"SELECT count(*), {', '.join(unreadable)} FROM {source.table} AS rows")[0]
    if not count:
        raise EmptyTableError("there are no new rows: nothing changes")
    for index, ((name, kind), example) in enumerate(zip(columns, examples, strict=True)):
        if strict and example is not None:
            if not are_alike(table_type := types[names[index]], kind):
                raise other_type(source, name, table_type, kind)
            raise DataError(f'"{name}" has a value that is no {kind}, as the model has it: {example!r}; {FIT_AGAIN}')
    return source.selected(f"SELECT {', '.join(selected)} FROM {source.table} AS rows")


def grown(schema: Schema, rows: Source, counts: Sequence[IntArray] | None = None) -> Growth:
    """The schema with the values of new ``rows``, which are :func:`conformed`.

    ``counts`` has the number of old rows of each code of each column, if known: it weighs the old rows of a grid's cell
    against the new ones.
    """
    columns: list[Column | TextColumn] = []
    origins = []
    for index, column in enumerate(schema.coded):
        name = quote_identifier(column.name)
        ((nulls,),) = rows.rows(f"SELECT count(*) FILTER ({name} IS NULL) FROM {rows.table}")
        has_null = column.has_null or nulls > 0
        if column.grid is None:
            grown_column, origin = _grown_values(column, rows, has_null)
        else:
            code_counts = None if counts is None else counts[index]
            grown_column, origin = _grown_grid(column, column.grid, rows, has_null, code_counts, schema.rows)
        columns.append(grown_column)
        null = [column.null if column.has_null else NEW] if has_null else []
        origins.append(np.array([*origin, *null], dtype=np.int64))
    columns += [grown_text(text, rows, schema.rows) for text in schema.texts]
    calendar = tuple(_grown_calendar(part, rows) for part in schema.calendar)
    origins += [_calendar_origins(before, after) for before, after in zip(schema.calendar, calendar, strict=True)]
    signed = tuple(column.name for column in schema.coded if column.name in schema.signed or _is_signed(column, rows))
    after = replace(schema, rows=schema.rows + rows.count(), columns=tuple(columns), signed=signed, calendar=calendar)
    return Growth(schema, after, tuple(origins))


def _calendar_origins(before: CalendarPart, after: CalendarPart) -> IntArray:
    """The origins of a calendar part's codes."""
    origin = np.full(after.null + after.has_null, NEW, dtype=np.int64)
    shift = before.first - after.first
    origin[shift : shift + before.null] = np.arange(before.null)
    if before.has_null:
        origin[after.null] = before.null
    return origin


def _grown_calendar(part: CalendarPart, rows: Source) -> CalendarPart:
    """The calendar part with the years of ``rows``, and with NULL if they have one."""
    number = part.sql
    selected = f"min({number}), max({number}), count(*) > count({number})"
    ((least, greatest, has_null),) = rows.rows(f"SELECT {selected} FROM {rows.table}")
    grown_part = part.grown(least, greatest, has_null)
    if part.part == YEAR and not 1 <= grown_part.first <= grown_part.last <= grown_part.first + MOST_YEARS:
        raise DataError(f'"{part.name}" would have dates of more than {MOST_YEARS} years: {FIT_AGAIN}')
    return grown_part


def _is_signed(column: Column, rows: Source) -> bool:
    """Whether a column has a negative zero or NaN among new ``rows``."""
    if column.type not in FLOATS:
        return False
    condition = is_signed(quote_identifier(column.name))
    return bool(rows.rows(f"SELECT 1 FROM {rows.table} WHERE {condition} LIMIT 1"))


def encoded(rows: Source, schema: Schema) -> Table:
    """The codes of ``rows``, whose values are all in ``schema``; the schema of the table has their number of rows."""
    nulls = np.array([column.null for column in schema.coded], dtype=np.int64)
    code_chunks: list[IntArray] = []
    texts: list[list[str | None]] = [[] for _ in schema.texts]
    with Recoded(rows, schema) as recoded:
        for chunk in recoded.chunks(1 << 16):
            code_chunks.append(np.where(chunk.codes == MISSING, nulls, chunk.codes))
            for strings_so_far, strings in zip(texts, chunk.texts, strict=True):
                strings_so_far.extend(strings or ())
        count = recoded.rows
    codes = np.concatenate(code_chunks)
    if (unknown := np.flatnonzero((codes < 0).any(axis=0))).size:
        name = schema.coded[int(unknown[0])].name
        raise DataError(f'"{name}" has values that the model does not hold: give them as new rows first')
    digits = tuple(
        digit for index, column in enumerate(schema.coded) for digit in to_digits(codes[:, index], column.radices)
    )
    digits += tuple(_calendar_codes(rows, schema, count))
    symbols = tuple(encode(column, strings) for column, strings in zip(schema.texts, texts, strict=True))
    return Table(replace(schema, rows=count), digits, symbols)


def _calendar_codes(rows: Source, schema: Schema, count: int) -> Iterator[NDArray[Any]]:
    """The codes of the hidden columns, in the order of the rows."""
    for part, column in zip(schema.calendar, schema.hidden, strict=True):
        codes = rows.arrays(f"SELECT {calendar_code(part)} AS code FROM {rows.table}")["code"]
        if len(codes) != count:
            raise DataError(CHANGED)
        yield from to_digits(np.asarray(codes), column.radices)


def _grown_values(column: Column, rows: Source, has_null: bool) -> tuple[Column, list[int]]:
    """The column with a code for every value of ``rows`` too, and the origins of its codes, without NULL's."""
    name = quote_identifier(column.name)
    values_and_origins = rows.rows(
        f"WITH old AS ({domain_of(column)}), "
        f"present AS (SELECT DISTINCT {name} AS value FROM {rows.table} WHERE {name} IS NOT NULL), "
        f"new AS (SELECT value FROM present ANTI JOIN old USING (value)) "
        f"SELECT CAST(value AS VARCHAR), code FROM "
        f"(SELECT value, code FROM old UNION ALL SELECT value, {NEW} FROM new) ORDER BY value"
    )
    values = tuple(str(text) for text, _ in values_and_origins)
    return _resized(column, values, has_null, None), [int(origin) for _, origin in values_and_origins]


def _resized(column: Column, values: tuple[str, ...], has_null: bool, grid: Grid | None) -> Column:
    """The column with these values and this grid. It keeps its number of positions, only the leading digit grows.

    More codes than the column may grow to are a :class:`DataError`.
    """
    size = (len(values) if grid is None else grid.cells) + has_null
    low_radices = column.radices[1:]
    most = int(MOST_GROWTH * column.size) if low_radices else MOST_SYMBOLS
    if size > max(most, column.size):
        message = f'"{column.name}" grows from {column.size:,} codes to {size:,}, and at most {most:,} have a place'
        alternative = "update it with fewer rows at a time, or " if low_radices else ""
        raise DataError(f"{message} in the model: {alternative}{FIT_AGAIN}")
    radices = (math.ceil(size / math.prod(low_radices)), *low_radices)
    return replace(column, values=values, has_null=has_null, radices=radices, grid=grid)


def _grown_grid(
    column: Column, grid: Grid, rows: Source, has_null: bool, counts: IntArray | None, old_rows: int
) -> tuple[Column, list[int]]:
    """The column with cells for the values of ``rows`` that are in no cell, and the origins of its cells.

    Such values are outside the range of the grid, or between two cells of single values: in a *gap*.
    """
    name, values = quote_identifier(column.name), quote_identifier(f"{rows.name}_values")
    average = old_rows / grid.cells
    cell_rows = np.full(grid.cells, average) if counts is None else counts[: grid.cells].astype(np.float64)
    rows.run(
        f"CREATE TEMP TABLE {values} AS SELECT value, n, {_gap(column, grid, 'value')} AS gap FROM "
        f"(SELECT {name} AS value, count(*) AS n FROM {rows.table} WHERE {name} IS NOT NULL GROUP BY 1)"
    )
    try:
        gaps = [int(gap) for (gap,) in rows.rows(f"SELECT DISTINCT gap FROM {values} WHERE gap IS NOT NULL")]
        added = {
            gap: cut_into_cells(
                rows, f"(SELECT value, n FROM {values} WHERE gap = {gap})", column.name, column.type, average
            )
            for gap in gaps
        }
        old_cells = _with_new_shares(column, grid, rows, values, cell_rows)
        granularity = grid.granularity
        if granularity is not None and rows.rows(f"SELECT 1 FROM {values} LIMIT 1"):
            granularity = granularity.common(granularity_of(rows, values, column.type))
    finally:
        rows.run(f"DROP TABLE {values}")
    cells: list[_Cell] = []
    origins: list[int] = []
    for index in range(-1, grid.cells):
        if index >= 0:
            cells.append(old_cells[index])
            origins.append(index)
        if index in added:
            cells += (new_cells := _cells(added[index]))
            origins += [NEW] * len(new_cells)
    starts = np.cumsum([0, *(len(cell.knots) for cell in cells)])[:-1]
    grown_grid = Grid(
        tuple(starts.tolist()),
        tuple(share for cell in cells for share in cell.shares),
        tuple(cell.distinct for cell in cells),
        granularity,
    )
    knots = tuple(knot for cell in cells for knot in cell.knots)
    return _resized(column, knots, has_null, grown_grid), origins


@dataclass(frozen=True)
class _Cell:
    """A cell's knots, the share of its rows below each, and its number of distinct values."""

    knots: tuple[str, ...]
    shares: tuple[float, ...]
    distinct: int


def _cells(column: Column) -> list[_Cell]:
    """The cells of a column's grid."""
    assert column.grid is not None
    knots = [column.grid.knots(cell) for cell in range(column.grid.cells)]
    return [
        _Cell(tuple(column.values[k] for k in indexes), tuple(column.grid.shares[k] for k in indexes), distinct)
        for indexes, distinct in zip(knots, column.grid.distinct, strict=True)
    ]


def _gap(column: Column, grid: Grid, value: str) -> str:
    """SQL for the last cell before a value that is in no cell, -1 if there is none; NULL if the value is in a cell."""
    least, greatest = (sql_literal(column.values[index], column.type) for index in (0, -1))
    single = [cell for cell in range(grid.cells) if grid.distinct[cell] == 1]
    before_single = [cell for cell, next_single in pairwise(single) if next_single == cell + 1]
    cases = [f"WHEN {value} < {least} THEN -1", f"WHEN {value} > {greatest} THEN {grid.cells - 1}"]
    if before_single:
        values = ", ".join(sql_literal(column.values[grid.starts[cell]], column.type) for cell in before_single)
        cell = cell_code(column, value)
        cells = ", ".join(map(str, before_single))
        cases.append(f"WHEN {value} NOT IN ({values}) AND {cell} IN ({cells}) THEN {cell}")
    return f"CASE {' '.join(cases)} END"


def _with_new_shares(
    column: Column, grid: Grid, rows: Source, values: str, cell_rows: NDArray[np.float64]
) -> list[_Cell]:
    """The old cells, with shares and numbers of values that include the new rows; ``cell_rows`` are old rows."""
    knots = domain_of(column)
    counted = rows.rows(
        f"SELECT knots.code, sum(n)::BIGINT, count(*) FROM (SELECT value, n FROM {values} WHERE gap IS NULL) AS new "
        f"ASOF JOIN ({knots}) AS knots ON new.value >= knots.value GROUP BY 1"
    )
    # By knot: the new rows, and their distinct values, up to the next knot.
    new_rows, new_distinct = np.zeros(len(column.values)), np.zeros(len(column.values))
    for knot, count, distinct in counted:
        new_rows[knot], new_distinct[knot] = count, distinct
    cells = []
    for old_rows, cell, knot_range in zip(cell_rows, _cells(column), map(grid.knots, range(grid.cells)), strict=True):
        indexes = list(knot_range)
        if len(indexes) == 1:
            cells.append(cell)
            continue
        below = np.concatenate([[0.0], np.cumsum(new_rows[indexes[:-1]])])  # new rows below each knot
        shares = (old_rows * np.array(cell.shares) + below) / max(1e-9, old_rows + below[-1])
        shares[0], shares[-1] = 0.0, 1.0
        unique = min(1.0, cell.distinct / max(1.0, old_rows))  # in a column of unique values, all new ones are distinct
        total_distinct = cell.distinct + round(unique * new_distinct[indexes].sum())
        cells.append(_Cell(cell.knots, tuple(np.maximum.accumulate(shares).tolist()), total_distinct))
    return cells
