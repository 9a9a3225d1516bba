"""Encoding of rows that a user passes in, with the schema of an existing model.

What :mod:`.domains` does with the values of a table itself, this does with the values that a model holds.
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
UNSEEN = -2  # a value that the model does not hold
UNREADABLE = -3  # a value that is none of the column's type; used in this module only
CHUNK = 4_096  # rows
TOLD = 40  # characters of a value in a message
NAMED = 8  # columns in a message


@dataclass(frozen=True, eq=False)
class RecodedRows:
    """Some rows of a source, from the row at ``first`` on, as codes (rows, columns) of a schema, MISSING or UNSEEN.

    ``nulls`` (rows, columns) says where a missing value is NULL; elsewhere the source lacks the column. ``texts`` has
    the strings of each text column, or None if the source lacks it.
    """

    first: int
    codes: IntArray
    nulls: BoolArray
    texts: tuple[list[str | None] | None, ...]

    def __len__(self) -> int:
        return len(self.codes)


def opened(rows: Any, schema: Schema, holes: bool = False) -> Source:
    """What :meth:`Source.open` takes, or one row or several as dictionaries, in which structs are dictionaries too.

    These must have the same keys, of the columns that the model holds, unless ``holes`` are welcome: then a key that
    some lack is NULL there.
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
        wanted = "give a path, a table (pandas, polars, Arrow, DuckDB), a dictionary, or a list of dictionaries"
        empty = "a table without columns" if len(getattr(rows, "columns", " ")) == 0 else f"an object of type {kind}"
        raise SourceError(f"cannot read rows from {empty}: {wanted}") from None


class Recoded:
    """A source as codes of ``schema``, kept in a temporary table of DuckDB's while they are needed.

    Columns are matched by name, others are ignored. A value that cannot be read in the column's type is a
    :class:`DataError`.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source, self.schema = source, schema
        self.types = dict(source.columns())
        self.columns = matched(list(self.types), schema.names)
        if not self.columns:
            ours, theirs = (
                ", ".join(names[:NAMED]) + (" ..." if len(names) > NAMED else "")
                for names in (list(schema.names), list(self.types))
            )
            raise DataError(f"the table has no column of the model: it has {theirs}; the model has {ours}")
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
        """All rows, in the source's order, some at a time."""
        present = np.isin(np.arange(len(self.schema.coded)), list(self.columns))
        for first in range(0, self.rows, size):
            found = self.source.arrays(
                f"SELECT * FROM {self._table} WHERE place >= {first} AND place < {first + size} ORDER BY place"
            )
            codes = np.full((len(found["place"]), len(present)), MISSING, dtype=np.int64)
            texts: list[list[str | None] | None] = [None] * len(self.schema.texts)
            for index in self.columns:
                if self.schema.columns[index].is_text:
                    texts[self.schema.text_index(index)] = _strings(found[f"t{index}"])
                else:
                    codes[:, index] = np.ma.getdata(found[f"c{index}"])
            yield RecodedRows(first, codes, (codes == MISSING) & present, tuple(texts))

    def _codes(self) -> str:
        """SQL for the place of every row, a code of each column, and each text."""
        read, cells, found, joins = [], ["*"], ["place"], []
        for index, name in self.columns.items():
            column, kind = self.schema.columns[index], self.types[name]
            given = f"rows.{quote_identifier(name)}"
            if column.is_text:
                read.append(f"CAST({given} AS VARCHAR) AS t{index}")
                found.append(f"t{index}")
                continue
            read.append(f"{given} AS r{index}, {read_as(given, kind, column.type)} AS v{index}")
            value = f"v{index}"
            if column.grid is None:
                code = f"coalesce(d{index}.code, {UNSEEN})"
                joins.append(f"LEFT JOIN ({domain_of(column)}) AS d{index} ON {value} = d{index}.value")
            else:
                cells.append(f"{cell_code(column, value)} AS g{index}")
                code = _checked_cell(column, value, f"g{index}")
            width = "SMALLINT" if column.size < 2**15 else "INTEGER"
            found.append(
                f"CAST(CASE WHEN r{index} IS NULL THEN {MISSING} "
                f"WHEN {value} IS NULL THEN {_unread(f'r{index}', column.type)} "
                f"WHEN {differs(f'r{index}', kind, value, column.type)} THEN {UNSEEN} "
                f"ELSE {code} END AS {width}) AS c{index}"
            )
        place = quote_identifier(f"{self.source.name}_place")  # no column has this name
        numbered = f"SELECT *, row_number() OVER () - 1 AS {place} FROM {self.source.table}"
        inner = f"SELECT {', '.join([f'rows.{place} AS place', *read])} FROM ({numbered}) AS rows"
        celled = f"SELECT {', '.join(cells)} FROM ({inner})"
        return f"SELECT {', '.join(found)} FROM ({celled}) {' '.join(joins)} ORDER BY place"

    def _check(self) -> None:
        """Count the rows, and raise an error about the first column that has a value of another type."""
        coded = {index: name for index, name in self.columns.items() if not self.schema.columns[index].is_text}
        counts = [f"count(*) FILTER (c{index} = {UNREADABLE})" for index in coded]
        self.rows, *unreadable = self.source.rows(f"SELECT {', '.join(['count(*)', *counts])} FROM {self._table}")[0]
        for (index, name), count in zip(coded.items(), unreadable, strict=True):
            if count:
                column = self.schema.coded[index]
                given = f"rows.{quote_identifier(name)}"
                value = read_as(given, self.types[name], column.type)
                ((text,),) = self.source.rows(
                    f"SELECT CAST({given} AS VARCHAR) FROM {self.source.table} AS rows WHERE {given} IS NOT NULL "
                    f"AND {value} IS NULL AND {_unread(given, column.type)} = {UNREADABLE} LIMIT 1"
                )
                message = text if len(text) <= TOLD else text[: TOLD - 1] + "…"
                raise DataError(f'"{name}" has a value that is no {column.type}, as the model has it: {message!r}')


def matched(given: Sequence[str], held: Sequence[str]) -> dict[int, str]:
    """For each name that is held, by its place, the name that was given for it: the same, or else in another case."""
    folded = {name.casefold(): name for name in reversed(given)}
    found = {place: name if name in given else folded.get(name.casefold()) for place, name in enumerate(held)}
    return {place: name for place, name in found.items() if name is not None}


def _strings(values: NDArray[Any]) -> list[str | None]:
    found = np.ma.getdata(values).astype(object)
    found[np.ma.getmaskarray(values)] = None
    texts: list[str | None] = found.tolist()
    return texts


def domain_of(column: Column) -> str:
    """SQL for the column's values and their codes."""
    numbered = f"SELECT unnest({sql_texts(column.values)}) AS text, unnest(range({len(column.values)})) AS code"
    return f"SELECT CAST(text AS {column.type}) AS value, code FROM ({numbered})"


def _is_dated(kind: str) -> bool:
    return kind in TIMES and kind != "TIME"


def read_as(given: str, kind: str, wanted: str) -> str:
    """SQL for a value of type ``kind`` in the type that the model has it in, NULL if that cannot be."""
    plain = kind in (wanted, TEXT, "BOOLEAN") or (is_number(kind) and (is_number(wanted) or wanted == "BOOLEAN"))
    if plain or (_is_dated(kind) and _is_dated(wanted)):
        return f"TRY_CAST({given} AS {wanted})"
    return f"TRY_CAST(CAST({given} AS VARCHAR) AS {wanted})"


def _unread(given: str, wanted: str) -> str:
    """SQL for the mark of a value that could not be read: a number that is too large for the column is only unseen."""
    if not is_number(wanted):
        return str(UNREADABLE)
    return f"CASE WHEN TRY_CAST(CAST({given} AS VARCHAR) AS DOUBLE) IS NULL THEN {UNREADABLE} ELSE {UNSEEN} END"


def are_alike(kind: str, wanted: str) -> bool:
    """Whether values of two types compare with each other: both are numbers or truth values, both times, or the same.

    >>> are_alike("BIGINT", "DOUBLE"), are_alike("DATE", "TIMESTAMP"), are_alike("VARCHAR", "DOUBLE")
    (True, True, False)
    """
    return _family(kind) == _family(wanted)


def _family(kind: str) -> str:
    if is_number(kind) or kind == "BOOLEAN":
        return "number"
    return "time" if _is_dated(kind) else kind


def other_type(source: Source, name: str, kind: str, wanted: str) -> DataError:
    """The error about a column of type ``kind`` that the model has as another; of a CSV file it names the option."""
    remedy = "give the table that the model was fitted on, or fit it again"
    if source.csv is not None:
        remedy = "say how to read the CSV file, by --csv or a countless.CsvFile"
        remedy = "; ".join([remedy, *source.warnings()[:1]])
    return DataError(f'the column "{name}" is {kind} in the table and {wanted} in the model: {remedy}')


def differs(given: str, kind: str, value: str, wanted: str) -> str:
    """SQL that is true where reading has changed the value: 2.5 is no INTEGER that was ever seen, noon no DATE."""
    if kind == wanted or kind in INTEGERS:
        return "FALSE"
    if wanted in INTEGERS or DECIMAL.fullmatch(wanted):
        return f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({given} AS DOUBLE)"
    if _is_dated(wanted) and _is_dated(kind):
        return f"TRY_CAST({value} AS {kind}) IS DISTINCT FROM {given}"
    return "FALSE"


def _checked_cell(column: Column, value: str, code: str) -> str:
    """SQL for the code of a value on a grid, given the cell that begins last before it.

    What lies between two cells belongs to the lower one, unless that is of a single value, and then to the next. Beyond
    the least and the greatest value, and between two single ones, nothing was seen.
    """
    assert column.grid is not None
    single = [cell for cell in range(column.grid.cells) if column.grid.distinct[cell] == 1]
    lonely = [cell for cell, after in pairwise(single) if after == cell + 1]
    least, greatest = (sql_literal(column.values[place], column.type) for place in (0, -1))
    cases = [f"WHEN {value} < {least} OR {value} > {greatest} THEN {UNSEEN}"]
    if single:
        values = ", ".join(sql_literal(column.values[column.grid.starts[cell]], column.type) for cell in single)
        cases.append(f"WHEN {code} NOT IN ({', '.join(map(str, single))}) OR {value} IN ({values}) THEN {code}")
        if lonely:
            cases.append(f"WHEN {code} IN ({', '.join(map(str, lonely))}) THEN {UNSEEN}")
        cases.append(f"ELSE {code} + 1")
    else:
        cases.append(f"ELSE {code}")
    return f"CASE {' '.join(cases)} END"


def _fields_by_struct(schema: Schema) -> dict[str, list[str]]:
    """The columns that are fields of each struct, by its name in lower case."""
    found = defaultdict(list)
    for name in schema.names:
        for dot in (index for index, letter in enumerate(name) if letter == "."):
            found[name[:dot].casefold()].append(name)
    return dict(found)


def _flat_items(row: Mapping[str, Any], fields: Mapping[str, list[str]], within: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a row by the name of its column: ``address.city`` for a struct's field, NULL if the struct is."""
    for key, value in row.items():
        name = f"{within}{key}"
        if isinstance(value, Mapping):
            yield from _flat_items(value, fields, f"{name}.")
        elif name.casefold() in fields and _plain(value, nan=False) is None:
            yield from dict.fromkeys(fields[name.casefold()]).items()
        else:
            yield name, value


def _check_keys(rows: Sequence[Mapping[str, Any]], schema: Schema) -> None:
    """Raise an error about the first row that lacks what others have: it is unclear whether NULL is meant."""
    names = dict.fromkeys(name for row in rows for name in row)
    held = [name for name in names if _type(schema, str(name)) is not None]
    for index, row in enumerate(rows):
        for name in held:
            if name not in row:
                raise DataError(f'row {index} has no "{name}": give every row the same keys, None for NULL')


def _type(schema: Schema, name: str) -> str | None:
    """The type of a column that the model holds."""
    index = schema.find(name)
    return None if index is None else schema.columns[index].type


def _has_nan(schema: Schema, name: str) -> bool:
    """Whether NaN is a value of the column like others."""
    index = schema.find(name)
    column = None if index is None else schema.columns[index]
    return column is not None and not column.is_text and column.type in FLOATS and "nan" in column.values


def _plain(value: Any, nan: bool) -> Any:
    """A value as DuckDB takes it; NaN, which is what pandas has for NULL, only where it is meant."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) and not nan else value


def _records(rows: Sequence[Mapping[str, Any]], schema: Schema) -> Source:
    """Rows as a table, with DuckDB's types; a column without any value has the model's type."""
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
    """Whether DuckDB understands all values, and as of the same type."""
    try:
        connection.execute("SELECT unnest($1)", [values]).fetchall()
    except (duckdb.Error, TypeError, RuntimeError, ValueError):
        return False
    return True
