"""Encoding of rows that a user passes in, with the schema of an existing model.

:mod:`.encoder` encodes a table with its own schema. Here a row may have values, types or columns that the schema lacks.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.data.columns.grids.grid_knots import cell_code
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import (
    DECIMAL,
    FLOATS,
    INTEGERS,
    TEXT,
    TIMES,
    is_number,
    quote_identifier,
    sql_literal,
    sql_texts,
)
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.source import Source, connect, first_line, new_name
from countless.errors import DataError, SourceError

MISSING = -1  # no value: NULL, or the whole column is absent
UNSEEN = -2  # a value that is not in the schema
UNREADABLE = -3  # a value that cannot be read in the column's type; used in this module only
CHUNK = 4_096  # rows
SHOWN_CHARACTERS = 40  # of a value in a message
SHOWN_COLUMNS = 8  # in a message


@dataclass(frozen=True, eq=False)
class RecodedRows:
    """Consecutive rows of a source, starting at row ``first``, as codes (rows, columns), MISSING or UNSEEN.

    ``nulls`` (rows, columns) is true where a missing value is NULL; else the source lacks the column. ``texts`` has the
    strings of each text column, or None if the source lacks it.
    """

    first: int
    codes: IntArray
    nulls: BoolArray
    texts: tuple[list[str | None] | None, ...]

    def __len__(self) -> int:
        return len(self.codes)


def opened(rows: Any, schema: Schema, holes: bool = False) -> Source:
    """Open ``rows``: anything that :meth:`Source.open` takes, or rows as dictionaries; structs are dictionaries too.

    Every row must have the same keys, as far as they are columns of the model. With ``holes``, a row that lacks a key
    has NULL there.
    """
    if isinstance(rows, Mapping):
        rows = [rows]
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        fields = _fields_by_struct(schema)
        rows = [dict(_flat_items(row, fields)) for row in rows]
        if not holes:
            _check_keys(rows, schema)
        return _records(rows, schema)
    kind = type(rows).__name__
    if kind == "Series":
        raise DataError("a Series has no column names: give a dictionary (for one row, series.to_dict()) or a table")
    try:
        return Source.open(with_default_options(rows, schema.csv))
    except SourceError:
        if isinstance(rows, str | os.PathLike):
            raise
        remedy = "give a path, a table (pandas, polars, Arrow, DuckDB), a dictionary, or a list of dictionaries"
        what = "a table without columns" if len(getattr(rows, "columns", " ")) == 0 else f"an object of type {kind}"
        raise SourceError(f"cannot read rows from {what}: {remedy}") from None


class Recoded:
    """A source as codes of ``schema``, held in a temporary table of DuckDB inside a ``with`` block.

    Columns are matched by name; columns that the schema lacks are ignored. A value that cannot be read in the column's
    type is a :class:`DataError`.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source, self.schema = source, schema
        self.types = dict(source.columns())
        self.columns = match_columns(list(self.types), schema.names)
        if not self.columns:
            model_names, table_names = (
                ", ".join(names[:SHOWN_COLUMNS]) + (" ..." if len(names) > SHOWN_COLUMNS else "")
                for names in (list(schema.names), list(self.types))
            )
            raise DataError(f"the table has no column of the model: it has {table_names}; the model has {model_names}")
        self.rows = 0
        self._table = quote_identifier(f"{source.name}_codes")

    def __enter__(self) -> Recoded:
        self.source.run(f"CREATE TEMP TABLE {self._table} AS {self._codes()}")
        try:
            self._check()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.source.run(f"DROP TABLE IF EXISTS {self._table}")

    def chunks(self, size: int = CHUNK) -> Iterator[RecodedRows]:
        """All rows in the source's order, ``size`` at a time."""
        present = np.isin(np.arange(len(self.schema.coded)), list(self.columns))
        for first in range(0, self.rows, size):
            condition = f"row_index >= {first} AND row_index < {first + size}"
            arrays = self.source.arrays(f"SELECT * FROM {self._table} WHERE {condition} ORDER BY row_index")
            codes = np.full((len(arrays["row_index"]), len(present)), MISSING, dtype=np.int64)
            texts: list[list[str | None] | None] = [None] * len(self.schema.texts)
            for index in self.columns:
                if self.schema.columns[index].is_text:
                    texts[self.schema.text_index(index)] = _strings(arrays[f"t{index}"])
                else:
                    codes[:, index] = np.ma.getdata(arrays[f"c{index}"])
            yield RecodedRows(first, codes, (codes == MISSING) & present, tuple(texts))

    def _codes(self) -> str:
        """SQL for each row's index, each column's code (c0, c1, ...) and each text column's string (t0, t1, ...).

        The innermost query reads the values (v0, ...) from the raw ones (r0, ...), the next adds the cells of grids
        (g0, ...), and the outermost joins the domains (d0, ...).
        """
        read, cells, selected, joins = [], ["*"], ["row_index"], []
        for index, name in self.columns.items():
            column, kind = self.schema.columns[index], self.types[name]
            raw = f"rows.{quote_identifier(name)}"
            if column.is_text:
                read.append(f"CAST({raw} AS VARCHAR) AS t{index}")
                selected.append(f"t{index}")
                continue
            read.append(f"{raw} AS r{index}, {read_as(raw, kind, column.type)} AS v{index}")
            value = f"v{index}"
            if column.grid is None:
                code = f"coalesce(d{index}.code, {UNSEEN})"
                joins.append(f"LEFT JOIN ({domain_of(column)}) AS d{index} ON {value} = d{index}.value")
            else:
                cells.append(f"{cell_code(column, value)} AS g{index}")
                code = _checked_cell(column, value, f"g{index}")
            width = "SMALLINT" if column.size < 2**15 else "INTEGER"
            selected.append(
                f"CAST(CASE WHEN r{index} IS NULL THEN {MISSING} "
                f"WHEN {value} IS NULL THEN {_mark_of_unread(f'r{index}', column.type)} "
                f"WHEN {differs(f'r{index}', kind, value, column.type)} THEN {UNSEEN} "
                f"ELSE {code} END AS {width}) AS c{index}"
            )
        row_index = quote_identifier(f"{self.source.name}_row")  # no column has this name
        numbered = f"SELECT *, row_number() OVER () - 1 AS {row_index} FROM {self.source.table}"
        values = f"SELECT {', '.join([f'rows.{row_index} AS row_index', *read])} FROM ({numbered}) AS rows"
        with_cells = f"SELECT {', '.join(cells)} FROM ({values})"
        return f"SELECT {', '.join(selected)} FROM ({with_cells}) {' '.join(joins)} ORDER BY row_index"

    def _check(self) -> None:
        """Count the rows, and raise an error about the first column with a value that cannot be read."""
        coded = {index: name for index, name in self.columns.items() if not self.schema.columns[index].is_text}
        counts = [f"count(*) FILTER (c{index} = {UNREADABLE})" for index in coded]
        self.rows, *unreadable = self.source.rows(f"SELECT {', '.join(['count(*)', *counts])} FROM {self._table}")[0]
        for (index, name), count in zip(coded.items(), unreadable, strict=True):
            if count:
                column = self.schema.coded[index]
                raw = f"rows.{quote_identifier(name)}"
                value = read_as(raw, self.types[name], column.type)
                ((text,),) = self.source.rows(
                    f"SELECT CAST({raw} AS VARCHAR) FROM {self.source.table} AS rows WHERE {raw} IS NOT NULL "
                    f"AND {value} IS NULL AND {_mark_of_unread(raw, column.type)} = {UNREADABLE} LIMIT 1"
                )
                shown = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
                raise DataError(f'"{name}" has a value that is no {column.type}, as the model has it: {shown!r}')


def match_columns(table_names: Sequence[str], model_names: Sequence[str]) -> dict[int, str]:
    """The table's name of each of the model's columns, by its index: the same name, or else in another case."""
    folded = {name.casefold(): name for name in reversed(table_names)}
    matches = {
        index: name if name in table_names else folded.get(name.casefold()) for index, name in enumerate(model_names)
    }
    return {index: name for index, name in matches.items() if name is not None}


def _strings(values: NDArray[Any]) -> list[str | None]:
    """The strings of a masked array, None where it is masked."""
    strings = np.ma.getdata(values).astype(object)
    strings[np.ma.getmaskarray(values)] = None
    texts: list[str | None] = strings.tolist()
    return texts


def domain_of(column: Column) -> str:
    """SQL for the column's values and their codes."""
    numbered = f"SELECT unnest({sql_texts(column.values)}) AS text, unnest(range({len(column.values)})) AS code"
    return f"SELECT CAST(text AS {column.type}) AS value, code FROM ({numbered})"


def _is_dated(kind: str) -> bool:
    """Whether values of this type have a date."""
    return kind in TIMES and kind != "TIME"


def read_as(raw: str, kind: str, model_type: str) -> str:
    """SQL for ``raw``, a value of type ``kind``, in the model's type; NULL if it cannot be read in this type."""
    to_number = is_number(kind) and (is_number(model_type) or model_type == "BOOLEAN")
    if kind in (model_type, TEXT, "BOOLEAN") or to_number or (_is_dated(kind) and _is_dated(model_type)):
        return f"TRY_CAST({raw} AS {model_type})"
    return f"TRY_CAST(CAST({raw} AS VARCHAR) AS {model_type})"


def _mark_of_unread(raw: str, model_type: str) -> str:
    """SQL for the mark of a value that could not be read: UNSEEN for a number that is too large for the type."""
    if not is_number(model_type):
        return str(UNREADABLE)
    return f"CASE WHEN TRY_CAST(CAST({raw} AS VARCHAR) AS DOUBLE) IS NULL THEN {UNREADABLE} ELSE {UNSEEN} END"


def are_alike(kind: str, model_type: str) -> bool:
    """Whether values of two types can be compared: both numbers or truth values, both with dates, or the same type.

    >>> are_alike("BIGINT", "DOUBLE"), are_alike("DATE", "TIMESTAMP"), are_alike("VARCHAR", "DOUBLE")
    (True, True, False)
    """
    return _family(kind) == _family(model_type)


def _family(kind: str) -> str:
    if is_number(kind) or kind == "BOOLEAN":
        return "number"
    return "time" if _is_dated(kind) else kind


def other_type(source: Source, name: str, kind: str, model_type: str) -> DataError:
    """The error about a column with another type than in the model; for a CSV file it names the option to use."""
    remedy = "give the table that the model was fitted on, or fit it again"
    if source.csv is not None:
        remedy = "say how to read the CSV file, by --csv or a countless.CsvFile"
        remedy = "; ".join([remedy, *source.warnings()[:1]])
    return DataError(f'the column "{name}" is {kind} in the table and {model_type} in the model: {remedy}')


def differs(raw: str, kind: str, value: str, model_type: str) -> str:
    """SQL that is true if ``value``, which was read from ``raw``, differs from it: 2 from 2.5, a DATE from its noon."""
    if kind == model_type or kind in INTEGERS:
        return "FALSE"
    if model_type in INTEGERS or DECIMAL.fullmatch(model_type):
        return f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({raw} AS DOUBLE)"
    if _is_dated(model_type) and _is_dated(kind):
        return f"TRY_CAST({value} AS {kind}) IS DISTINCT FROM {raw}"
    return "FALSE"


def _checked_cell(column: Column, value: str, code: str) -> str:
    """SQL for the code of a value on a grid, given ``code``, the last cell that starts at or before it.

    A value between two cells gets the lower one, or the next if the lower one has a single value. A value outside the
    range of the grid, or between two cells of single values, is UNSEEN.
    """
    assert column.grid is not None
    single = [cell for cell in range(column.grid.cells) if column.grid.distinct[cell] == 1]
    before_single = [cell for cell, next_single in pairwise(single) if next_single == cell + 1]
    least, greatest = (sql_literal(column.values[index], column.type) for index in (0, -1))
    cases = [f"WHEN {value} < {least} OR {value} > {greatest} THEN {UNSEEN}"]
    if single:
        values = ", ".join(sql_literal(column.values[column.grid.starts[cell]], column.type) for cell in single)
        cases.append(f"WHEN {code} NOT IN ({', '.join(map(str, single))}) OR {value} IN ({values}) THEN {code}")
        if before_single:
            cases.append(f"WHEN {code} IN ({', '.join(map(str, before_single))}) THEN {UNSEEN}")
        cases.append(f"ELSE {code} + 1")
    else:
        cases.append(f"ELSE {code}")
    return f"CASE {' '.join(cases)} END"


def _fields_by_struct(schema: Schema) -> dict[str, list[str]]:
    """The columns that are fields of each struct, by its name in lower case."""
    fields = defaultdict(list)
    for name in schema.names:
        for dot in (index for index, letter in enumerate(name) if letter == "."):
            fields[name[:dot].casefold()].append(name)
    return dict(fields)


def _flat_items(row: Mapping[str, Any], fields: Mapping[str, list[str]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The columns of a row with their values: ``address.city`` for a field of a struct, NULL if the struct is NULL."""
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat_items(value, fields, f"{name}.")
        elif name.casefold() in fields and _plain(value, nan=False) is None:
            yield from dict.fromkeys(fields[name.casefold()]).items()
        else:
            yield name, value


def _check_keys(rows: Sequence[Mapping[str, Any]], schema: Schema) -> None:
    """Raise an error about the first row that lacks a key which other rows have: it may have been forgotten."""
    names = dict.fromkeys(name for row in rows for name in row)
    modelled = [name for name in names if _type(schema, str(name)) is not None]
    for index, row in enumerate(rows):
        for name in modelled:
            if name not in row:
                raise DataError(f'row {index} has no "{name}": give every row the same keys, None for NULL')


def _type(schema: Schema, name: str) -> str | None:
    """The type of the model's column called ``name``; None if there is none."""
    index = schema.find(name)
    return None if index is None else schema.columns[index].type


def _has_nan(schema: Schema, name: str) -> bool:
    """Whether NaN is one of the column's values."""
    index = schema.find(name)
    column = None if index is None else schema.columns[index]
    return column is not None and not column.is_text and column.type in FLOATS and "nan" in column.values


def _plain(value: Any, nan: bool) -> Any:
    """A value as DuckDB takes it. NaN, which pandas has for NULL, becomes None, unless ``nan`` is a value itself."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) and not nan else value


def _records(rows: Sequence[Mapping[str, Any]], schema: Schema) -> Source:
    """Rows as a table with the types that DuckDB infers; a column without any value has the model's type."""
    columns = {
        str(name): [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)
    }
    if not columns:
        raise DataError("there are no rows, or rows without columns: give at least one column with a value")
    name, connection = new_name(), connect()
    selected = []
    for index, (key, values) in enumerate(columns.items(), 1):
        nan = _has_nan(schema, key)
        columns[key] = values = [_plain(value, nan) for value in values]
        value = f"unnest(${index})"
        if all(item is None for item in values):
            value = f"CAST({value} AS {_type(schema, key) or TEXT})"
        elif not _is_one_type(connection, values):
            columns[key] = [None if item is None else str(item) for item in values]
        selected.append(f"{value} AS {quote_identifier(key)}")
    try:
        create = f"CREATE TEMP TABLE {quote_identifier(name)} AS SELECT {', '.join(selected)}"
        connection.execute(create, list(columns.values()))
    except duckdb.Error as error:
        raise SourceError(f"cannot read the rows as a table: {first_line(error)}") from None
    return Source(name, connection, None)


def _is_one_type(connection: duckdb.DuckDBPyConnection, values: list[Any]) -> bool:
    """Whether DuckDB can hold all values in one type."""
    try:
        connection.execute("SELECT unnest($1)", [values]).fetchall()
    except (duckdb.Error, TypeError, RuntimeError, ValueError):
        return False
    return True
