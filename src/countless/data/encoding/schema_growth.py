"""Schema growth: new rows add values for which the model has no codes yet.

Codes are in the order of the values, so that a new value in the middle shifts those after it. *Origins* say what
stays: the old code of every new one. A grid gets cells of its own for values beyond its ends.
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
from countless.data.columns.strings.text import Strings, TextColumn, encode
from countless.data.columns.types import FLOATS, is_signed, quote_identifier, sql_literal
from countless.data.encoding.encoder import CHANGED, calendar_code
from countless.data.encoding.recoding import (
    MISSING,
    Recoded,
    are_alike,
    differs,
    domain_of,
    matched,
    other_type,
    read_as,
)
from countless.data.encoding.table import Table
from countless.data.encoding.text_growth import grown_text
from countless.data.sources.csv_files import wrong_separator
from countless.data.sources.source import Source
from countless.errors import DataError, EmptyTableError

NEW = -1  # the origin of a code for a value that was not there
MOST_SYMBOLS = 2 * DIGITS_FROM  # of a column in one position
MOST_GROWTH = 1.5  # of a column in digits: more would put most codes elsewhere
FIT_AGAIN = "fit the whole table again with countless fit"


@dataclass(frozen=True, eq=False)
class Growth:
    """The schema of a table before and after new rows, and the old code, or NEW, of every code of each column."""

    old: Schema
    schema: Schema
    origins: tuple[IntArray, ...]

    @property
    def new_values(self) -> dict[str, int]:
        """How many codes are new in each column that has any."""
        counts = {
            column.name: int((origin == NEW).sum())
            for column, origin in zip(self.schema.coded, self.origins[: len(self.schema.coded)], strict=True)
        }
        return {name: count for name, count in counts.items() if count}

    def codes(self, place: int) -> IntArray:
        """The new code of every old one of the modelled column at ``place``."""
        origin = self.origins[place]
        kept = np.flatnonzero(origin != NEW)
        codes = np.empty(self.old.modelled[place].size, dtype=np.int64)
        codes[origin[kept]] = kept
        return codes

    def moved(self, symbols: IntArray) -> IntArray:
        """Rows of symbols (rows, positions) of the old schema, in those of the new one."""
        found = np.empty((len(symbols), len(self.schema.sizes)), dtype=np.int64)
        for index, (before, after) in enumerate(zip(self.old.modelled, self.schema.modelled, strict=True)):
            codes = np.ravel_multi_index(tuple(symbols[:, self.old.spans[index]].T), before.radices)
            digits = to_digits(self.codes(index)[codes], after.radices)
            for position, digit in zip(self.schema.spans[index], digits, strict=True):
                found[:, position] = digit
        return found


def conformed(source: Source, schema: Schema, strict: bool = True) -> Source:
    """The rows with the model's columns, under its names and in its types, kept in a table of their own.

    A column that is missing, or a value that its type does not hold, is an error; unless ``strict``, such a value is
    NULL.
    """
    types = dict(source.columns())
    held = [(column.name, column.type) for column in schema.columns]
    names = matched(list(types), [name for name, _ in held])
    if lacking := [name for index, (name, _) in enumerate(held) if index not in names]:
        told, hint = ", ".join(lacking[:5]), None if source.csv is None else wrong_separator(source)
        raise DataError(
            f"the rows lack the model's columns {told}: {hint or 'give every column that it was fitted on'}"
        )
    selected, wrong = [], []
    for index, (name, kind) in enumerate(held):
        given = f"rows.{quote_identifier(names[index])}"
        value = read_as(given, types[names[index]], kind)
        selected.append(f"{value} AS {quote_identifier(name)}")
        changed = differs(given, types[names[index]], value, kind)
        wrong.append(f"any_value({given}) FILTER ({given} IS NOT NULL AND ({value} IS NULL OR {changed}))")
    count, *found = source.rows(f"SELECT count(*), {', '.join(wrong)} FROM {source.table} AS rows")[0]
    if not count:
        raise EmptyTableError("there are no new rows: nothing changes")
    for index, ((name, kind), value) in enumerate(zip(held, found, strict=True)):
        if strict and value is not None:
            if not are_alike(given_type := types[names[index]], kind):
                raise other_type(source, name, given_type, kind)
            raise DataError(f'"{name}" has a value that is no {kind}, as the model has it: {value!r}; {FIT_AGAIN}')
    return source.selected(f"SELECT {', '.join(selected)} FROM {source.table} AS rows")


def grown(schema: Schema, rows: Source, counts: Sequence[IntArray] | None = None) -> Growth:
    """The schema that holds new ``rows`` too, which are :func:`conformed`.

    ``counts`` are the old rows of every code of each column, where they are known: they tell how much the rows of
    a grid's cell weigh beside the new ones.
    """
    columns: list[Column | TextColumn] = []
    origins = []
    for index, column in enumerate(schema.coded):
        name = quote_identifier(column.name)
        ((nulls,),) = rows.rows(f"SELECT count(*) FILTER ({name} IS NULL) FROM {rows.table}")
        has_null = column.has_null or nulls > 0
        if column.grid is None:
            found, origin = _grown_values(column, rows, has_null)
        else:
            own = None if counts is None else counts[index]
            found, origin = _grown_grid(column, column.grid, rows, has_null, own, schema.rows)
        columns.append(found)
        null = [column.null if column.has_null else NEW] if has_null else []
        origins.append(np.array([*origin, *null], dtype=np.int64))
    columns += [grown_text(text, rows, schema.rows) for text in schema.texts]
    calendar = tuple(_grown_calendar(part, rows) for part in schema.calendar)
    for before, part in zip(schema.calendar, calendar, strict=True):
        old = np.full(part.null + part.has_null, NEW, dtype=np.int64)
        shift = before.first - part.first
        old[shift : shift + before.null] = np.arange(before.null)
        if before.has_null:
            old[part.null] = before.null
        origins.append(old)
    signed = tuple(column.name for column in schema.coded if column.name in schema.signed or _is_signed(column, rows))
    after = replace(schema, rows=schema.rows + rows.count(), columns=tuple(columns), signed=signed, calendar=calendar)
    return Growth(schema, after, tuple(origins))


def _grown_calendar(part: CalendarPart, rows: Source) -> CalendarPart:
    """With the years of ``rows``, and NULL if they bring it."""
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
    """The ``rows``, all of whose values ``schema`` holds, as codes; the table's schema has their number."""
    nulls = np.array([column.null for column in schema.coded], dtype=np.int64)
    parts: list[IntArray] = []
    texts: list[list[str | None]] = [[] for _ in schema.texts]
    with Recoded(rows, schema) as recoded:
        for some in recoded.chunks(1 << 16):
            parts.append(np.where(some.codes == MISSING, nulls, some.codes))
            for own, found in zip(texts, some.texts, strict=True):
                own.extend(found or ())
        count = recoded.rows
    codes = np.concatenate(parts)
    if (strange := np.flatnonzero((codes < 0).any(axis=0))).size:
        name = schema.coded[int(strange[0])].name
        raise DataError(f'"{name}" has values that the model does not hold: give them as new rows first')
    digits = tuple(
        digit for index, column in enumerate(schema.coded) for digit in to_digits(codes[:, index], column.radices)
    )
    digits += tuple(_calendar_codes(rows, schema, count))
    strings: list[Strings] = [encode(column, own) for column, own in zip(schema.texts, texts, strict=True)]
    return Table(replace(schema, rows=count), digits, tuple(strings))


def _calendar_codes(rows: Source, schema: Schema, count: int) -> Iterator[NDArray[Any]]:
    """The codes of the hidden columns, in the order of the rows."""
    for part, column in zip(schema.calendar, schema.hidden, strict=True):
        found = rows.arrays(f"SELECT {calendar_code(part)} AS code FROM {rows.table}")["code"]
        if len(found) != count:
            raise DataError(CHANGED)
        yield from to_digits(np.asarray(found), column.radices)


def _grown_values(column: Column, rows: Source, has_null: bool) -> tuple[Column, list[int]]:
    """With a code for every value of ``rows``, in order."""
    name = quote_identifier(column.name)
    found = rows.rows(
        f"WITH held AS ({domain_of(column)}), "
        f"met AS (SELECT DISTINCT {name} AS value FROM {rows.table} WHERE {name} IS NOT NULL), "
        f"fresh AS (SELECT value FROM met ANTI JOIN held USING (value)) "
        f"SELECT CAST(value AS VARCHAR), code FROM "
        f"(SELECT value, code FROM held UNION ALL SELECT value, {NEW} FROM fresh) ORDER BY value"
    )
    values = tuple(str(text) for text, _ in found)
    return _sized(column, values, has_null, None), [int(code) for _, code in found]


def _sized(column: Column, values: tuple[str, ...], has_null: bool, grid: Grid | None) -> Column:
    """With as many positions as before: the leading digit grows. More than that is refused."""
    size = (len(values) if grid is None else grid.cells) + has_null
    others = column.radices[1:]
    within = math.prod(others)
    most = int(MOST_GROWTH * column.size) if others else MOST_SYMBOLS
    if size > max(most, column.size):
        message = f'"{column.name}" grows from {column.size:,} codes to {size:,}, and at most {most:,} have a place'
        way = "update it with fewer rows at a time, or " if others else ""
        raise DataError(f"{message} in the model: {way}{FIT_AGAIN}")
    radices = (math.ceil(size / within), *others)
    return replace(column, values=values, has_null=has_null, radices=radices, grid=grid)


def _grown_grid(
    column: Column, grid: Grid, rows: Source, has_null: bool, counts: IntArray | None, old_rows: int
) -> tuple[Column, list[int]]:
    """With cells for values that lie in none: beyond both ends, and between cells of single values."""
    name, values = quote_identifier(column.name), quote_identifier(f"{rows.name}_met")
    average = old_rows / grid.cells
    own = np.full(grid.cells, average) if counts is None else counts[: grid.cells].astype(np.float64)
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
        pieces = _with_new_shares(column, grid, rows, values, own)
        granularity = grid.granularity
        if granularity is not None and rows.rows(f"SELECT 1 FROM {values} LIMIT 1"):
            granularity = granularity.common(granularity_of(rows, values, column.type))
    finally:
        rows.run(f"DROP TABLE {values}")
    cells: list[_Cell] = []
    origins: list[int] = []
    for place in range(-1, grid.cells):
        if place >= 0:
            cells.append(pieces[place])
            origins.append(place)
        if place in added:
            cells += (fresh := _cells(added[place]))
            origins += [NEW] * len(fresh)
    starts = np.cumsum([0, *(len(cell.knots) for cell in cells)])[:-1]
    joined = Grid(
        tuple(starts.tolist()),
        tuple(share for cell in cells for share in cell.shares),
        tuple(cell.distinct for cell in cells),
        granularity,
    )
    knots = tuple(knot for cell in cells for knot in cell.knots)
    return _sized(column, knots, has_null, joined), origins


@dataclass(frozen=True)
class _Cell:
    """A cell's knots, the share of its rows below each, and how many values it has."""

    knots: tuple[str, ...]
    shares: tuple[float, ...]
    distinct: int


def _cells(column: Column) -> list[_Cell]:
    assert column.grid is not None
    places = [column.grid.knots(cell) for cell in range(column.grid.cells)]
    return [
        _Cell(tuple(column.values[k] for k in own), tuple(column.grid.shares[k] for k in own), distinct)
        for own, distinct in zip(places, column.grid.distinct, strict=True)
    ]


def _gap(column: Column, grid: Grid, value: str) -> str:
    """SQL for the cell after which a value lies that is in none, -1 before the first; NULL if it is in one."""
    least, greatest = (sql_literal(column.values[place], column.type) for place in (0, -1))
    single = [cell for cell in range(grid.cells) if grid.distinct[cell] == 1]
    lonely = [cell for cell, after in pairwise(single) if after == cell + 1]
    cases = [f"WHEN {value} < {least} THEN -1", f"WHEN {value} > {greatest} THEN {grid.cells - 1}"]
    if lonely:
        alone = ", ".join(sql_literal(column.values[grid.starts[cell]], column.type) for cell in lonely)
        cell = cell_code(column, value)
        cases.append(f"WHEN {value} NOT IN ({alone}) AND {cell} IN ({', '.join(map(str, lonely))}) THEN {cell}")
    return f"CASE {' '.join(cases)} END"


def _with_new_shares(column: Column, grid: Grid, rows: Source, values: str, own: Any) -> list[_Cell]:
    """The old cells; how rows lie between their knots, and how many values they have, follows the new rows too."""
    knots = domain_of(column)
    found = rows.rows(
        f"SELECT held.code, sum(n)::BIGINT, count(*) FROM (SELECT value, n FROM {values} WHERE gap IS NULL) AS met "
        f"ASOF JOIN ({knots}) AS held ON met.value >= held.value GROUP BY 1"
    )
    met, distinct = np.zeros(len(column.values)), np.zeros(len(column.values))
    for knot, count, different in found:
        met[knot], distinct[knot] = count, different
    cells = []
    for index, cell in enumerate(_cells(column)):
        ours = list(grid.knots(index))
        if len(ours) == 1:
            cells.append(cell)
            continue
        below = np.concatenate([[0.0], np.cumsum(met[ours[:-1]])])  # new rows below each knot
        shares = (own[index] * np.array(cell.shares) + below) / max(1e-9, own[index] + below[-1])
        shares[0], shares[-1] = 0.0, 1.0
        unique = min(1.0, cell.distinct / max(1.0, own[index]))  # where no value comes twice, all of them are new
        values_now = cell.distinct + round(unique * distinct[ours].sum())
        cells.append(_Cell(cell.knots, tuple(np.maximum.accumulate(shares).tolist()), values_now))
    return cells
