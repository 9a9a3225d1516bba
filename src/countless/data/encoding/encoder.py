"""The encoder: turns the rows of a source into codes of a schema, batch by batch, in one scan."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.calendar import CalendarPart
from countless.data.columns.digits import to_digits
from countless.data.columns.grids.grid_knots import cell_code
from countless.data.columns.names import exclude_option
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.string_dictionary import StringDictionary
from countless.data.columns.strings.text import Alphabet, Strings
from countless.data.columns.types import DECIMAL, TEXT, decimal_digits, quote_identifier, sql_texts, sql_value
from countless.data.encoding.sorted_lookup import Lookup, ordered
from countless.data.sources.arrow_batches import Vector, rows_at_once
from countless.data.sources.source import Source
from countless.errors import DataError

LONG_INTEGERS = ("HUGEINT", "UHUGEINT")
MOST_DIGITS = 18  # of a decimal that is stored as an integer of 64 bits
MOST_NUMBER = 2**63 - 1
CHANGED = "the table changed while it was read: fit again when nothing writes to it"


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """A batch of rows: the codes of every position, and the symbols of each text column."""

    codes: tuple[NDArray[Any], ...]
    strings: tuple[Strings, ...]
    rows: int


class Encoder:
    """Replaces the values of a source by their codes in ``schema``, which was read from the same source."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source = source
        self._coders = [_coder(source, column) for column in schema.coded]
        self._coders += [
            _CalendarCoder(column, part) for column, part in zip(schema.hidden, schema.calendar, strict=True)
        ]
        self._alphabets = [Alphabet(text) for text in schema.texts]
        texts = [f"CAST({quote_identifier(text.name)} AS VARCHAR)" for text in schema.texts]
        symbol_bytes = sum(4 * (text.length + 1) for text in schema.texts)  # with intermediate arrays
        self._batch_rows = rows_at_once(8 * len(schema.sizes) + symbol_bytes)
        self._selected = ", ".join([*(coder.selected for coder in self._coders), *texts])

    def batches(self, first: int = 0) -> Generator[EncodedRows]:
        """The rows from the one at ``first`` on, in the source's order."""
        rows = f"(SELECT * FROM {self.source.table} OFFSET {first})" if first else self.source.table
        with ExitStack() as stack:
            for coder in self._coders:
                if coder.dictionary is not None:
                    stack.enter_context(coder.dictionary)
            batches = self.source.batches(f"SELECT {self._selected} FROM {rows}", self._batch_rows)
            for batch in stack.enter_context(closing(batches)):  # closed before the dictionaries, which it uses
                yield self._encoded(batch)

    def _encoded(self, batch: list[Vector]) -> EncodedRows:
        columns, texts = batch[: len(self._coders)], batch[len(self._coders) :]
        codes = tuple(
            digit for coder, vector in zip(self._coders, columns, strict=True) for digit in coder.digits(vector)
        )
        strings = tuple(
            alphabet.encode(Characters.of(vector)) for alphabet, vector in zip(self._alphabets, texts, strict=True)
        )
        return EncodedRows(codes, strings, len(batch[0]))


class _Coder(ABC):
    """Finds the codes of one column from the values of :attr:`selected`, an SQL expression.

    If the expression uses a :attr:`dictionary`, that must be open while the rows are read.
    """

    dictionary: StringDictionary | None = None

    def __init__(self, column: Column, selected: str) -> None:
        self.column, self.selected = column, selected
        self._tables = to_digits(np.arange(column.size), column.radices)

    def digits(self, vector: Vector) -> Iterator[NDArray[Any]]:
        """The digits of the rows' codes at each of the column's positions."""
        codes = self._codes(vector)
        for table in self._tables:
            yield table.take(codes)

    @abstractmethod
    def _codes(self, vector: Vector) -> NDArray[Any]:
        """The code of every row."""


class _NullCoder(_Coder):
    """A column without values."""

    def __init__(self, column: Column, value: str) -> None:
        super().__init__(column, f"CAST({value} IS NOT NULL AS TINYINT)")

    def _codes(self, vector: Vector) -> NDArray[Any]:
        if vector.values.any():
            raise DataError(CHANGED)
        return vector.values


class _DuckDBCoder(_Coder):
    """A column whose codes DuckDB computes: NULL, or too high a code, for a value that is not in the schema."""

    def __init__(self, column: Column, code: str, dictionary: StringDictionary | None = None) -> None:
        super().__init__(column, code)
        self.dictionary = dictionary

    def _codes(self, vector: Vector) -> NDArray[Any]:
        if vector.valid is not None or vector.values.max(initial=0) >= self.column.size:
            raise DataError(CHANGED)
        return vector.values


class _CalendarCoder(_Coder):
    """A hidden column: a calendar part of another column, which DuckDB computes."""

    def __init__(self, column: Column, part: CalendarPart) -> None:
        super().__init__(column, calendar_code(part))

    def _codes(self, vector: Vector) -> NDArray[Any]:
        if vector.values.min(initial=0) < 0 or vector.values.max(initial=0) >= self.column.size:
            raise DataError(CHANGED)
        return vector.values


class _NumberCoder(_Coder):
    """A column of numbers or times, looked up among its sorted values, or among the least values of its cells."""

    def __init__(self, source: Source, column: Column, value: str, kind: str) -> None:
        super().__init__(column, _number(value, kind))
        texts = column.values if column.grid is None else [column.values[start] for start in column.grid.starts]
        keys = _sort_keys(source, texts, kind)
        if len(keys) != len(texts) or (keys[1:] <= keys[:-1]).any():
            remedy = f"leave it out with {exclude_option(column.name)}"
            raise DataError(f'the values of "{column.name}" cannot be distinguished: {remedy}')
        self._lookup = Lookup(keys)

    def _codes(self, vector: Vector) -> NDArray[Any]:
        keys = ordered(vector.values)
        least = self._lookup.keys[0]
        if vector.valid is not None:
            keys = np.where(vector.valid, keys, least)
        if self.column.grid is not None:
            codes = self._lookup.last(keys)
            all_known = keys.min(initial=least) >= least
        else:
            codes, is_known = self._lookup.equal(keys)
            all_known = bool(is_known.all())
        if not all_known or (vector.valid is not None and not self.column.has_null):
            raise DataError(CHANGED)
        if vector.valid is not None:
            codes[~vector.valid] = self.column.null
        return codes


def _coder(source: Source, column: Column) -> _Coder:
    """The coder for a column."""
    value = sql_value(column.name, column.type)
    if not column.values:
        return _NullCoder(column, value)
    kind = short_type(column)
    if kind is not None:
        return _NumberCoder(source, column, value if kind == column.type else f"CAST({value} AS {kind})", kind)
    if column.grid is not None:
        return _DuckDBCoder(column, f"CAST({cell_code(column, value)} AS INTEGER)")
    dictionary = StringDictionary(source, column.values)
    code = dictionary.code(value if column.type == TEXT else f"CAST({value} AS VARCHAR)")
    if column.has_null:
        code = f"CASE WHEN {value} IS NULL THEN {column.null} ELSE CAST({code} AS INTEGER) END"
    return _DuckDBCoder(column, code, dictionary)


def calendar_code(part: CalendarPart) -> str:
    """SQL for the code of a calendar part."""
    return f"CAST(coalesce({part.sql} - {part.first}, {part.null}) AS INTEGER)"


def short_type(column: Column) -> str | None:
    """A type of at most 64 bits that holds every value of ``column``, which has values; None if there is none.

    >>> short_type(Column("n", "HUGEINT", ("-5", "7"), False)), short_type(Column("n", "HUGEINT", (str(2**70),), False))
    ('BIGINT', None)
    >>> short_type(Column("d", "DECIMAL(38,2)", ("-12.50", "3.00"), False)), short_type(Column("c", "DATE", (), True))
    ('DECIMAL(18,2)', 'DATE')
    """
    ends = column.values[:1] + column.values[-1:]
    if column.type in LONG_INTEGERS:
        return "BIGINT" if all(-MOST_NUMBER <= int(text) <= MOST_NUMBER for text in ends) else None
    if DECIMAL.fullmatch(column.type):
        width, scale = decimal_digits(column.type)
        if width <= MOST_DIGITS:
            return column.type
        fits = scale <= MOST_DIGITS and all(len(re.sub(r"\D", "", text)) <= MOST_DIGITS for text in ends)
        return f"DECIMAL({MOST_DIGITS},{scale})" if fits else None
    return None if column.type == TEXT else column.type


def _number(value: str, kind: str) -> str:
    """SQL for a value as a number or time."""
    return f"CAST({value} AS TINYINT)" if kind == "BOOLEAN" else value


def _sort_keys(source: Source, texts: Sequence[str], kind: str) -> NDArray[np.int64]:
    """The sort keys of values, given as DuckDB prints them."""
    listed = f"SELECT unnest({sql_texts(texts)}) AS text"
    sql = f"SELECT {_number(f'CAST(text AS {kind})', kind)} FROM ({listed})"
    batches = [ordered(vector.values).copy() for (vector,) in source.batches(sql)]
    return np.concatenate([np.empty(0, dtype=np.int64), *batches])
