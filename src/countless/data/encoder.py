"""The codes of a table's rows, given its schema: one scan, a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.arrow import Vector, rows_at_once
from countless.data.characters import Characters
from countless.data.digits import to_digits
from countless.data.lookup import Lookup, ordered
from countless.data.quantiles import cell_code
from countless.data.scan import quote_path
from countless.data.schema import Column, Schema
from countless.data.source import Source
from countless.data.text import Alphabet, Strings
from countless.data.types import DECIMAL, TEXT, quote_identifier
from countless.errors import DataError

LONG_INTEGERS = ("HUGEINT", "UHUGEINT")
MOST_DIGITS = 18  # of a decimal that is stored as an integer of 64 bits
CHANGED = "the table changed while it was read: fit again when nothing writes to it"


@dataclass(frozen=True, eq=False)
class Encoded:
    """Some rows: the codes of every position, and the symbols of each text column."""

    codes: tuple[NDArray[Any], ...]
    strings: tuple[Strings, ...]
    rows: int


class Encoder:
    """Replaces the values of a source by their codes in ``schema``, which must be the source's own."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source = source
        self._coders = [_Coder(source, column) for column in schema.columns]
        self._alphabets = [Alphabet(text) for text in schema.texts]
        texts = [f"CAST({quote_identifier(text.name)} AS VARCHAR)" for text in schema.texts]
        symbols = sum(4 * (text.length + 1) for text in schema.texts)  # with what is made of them on the way
        self._at_once = rows_at_once(8 * len(schema.sizes) + symbols)
        self._selected = ", ".join([*(coder.selected for coder in self._coders), *texts])

    def batches(self, first: int = 0) -> Iterator[Encoded]:
        """The rows from the one at ``first`` on, in the source's order."""
        rows = f"(SELECT * FROM {self.source.table} OFFSET {first})" if first else self.source.table
        for batch in self.source.batches(f"SELECT {self._selected} FROM {rows}", self._at_once):
            columns, texts = batch[: len(self._coders)], batch[len(self._coders) :]
            codes = tuple(
                digit for coder, vector in zip(self._coders, columns, strict=True) for digit in coder.digits(vector)
            )
            strings = tuple(
                alphabet.encode(Characters.of(vector)) for alphabet, vector in zip(self._alphabets, texts, strict=True)
            )
            yield Encoded(codes, strings, len(batch[0]))


class _Coder:
    """The codes of one column.

    Numbers and times are looked up among the sorted values; strings and very long numbers by their hashes, which must
    differ. The cells of a grid of these are found by DuckDB.
    """

    def __init__(self, source: Source, column: Column) -> None:
        self._null = column.null
        self._tables = to_digits(np.arange(column.size), column.radices)
        self._lookup: Lookup | None = None
        self._cells = column.grid is not None
        self._order: NDArray[np.int32] | None = None
        self._only_null = False
        value = f"CAST({quote_identifier(column.name)} AS {column.type})"
        self.selected = _key(value, column.type)
        if column.grid is not None and _is_hashed(column.type):
            self.selected = f"CAST({cell_code(column, value)} AS INTEGER)"
            return
        texts = column.values if column.grid is None else [column.values[start] for start in column.grid.starts]
        self._only_null = not texts
        if self._only_null:
            return
        keys = _keys(source, texts, column.type)
        if _is_hashed(column.type):
            order = np.argsort(keys, kind="stable")
            keys, self._order = keys[order], order.astype(np.int32)
        if len(keys) != len(texts) or (keys[1:] <= keys[:-1]).any():
            raise DataError(f'the values of "{column.name}" cannot be told apart: leave it out with --exclude')
        self._lookup = Lookup(keys)

    def digits(self, vector: Vector) -> Iterator[NDArray[Any]]:
        """The code of every row at each of the column's positions."""
        codes = self._codes(vector)
        for table in self._tables:
            yield table.take(codes)

    def _codes(self, vector: Vector) -> NDArray[Any]:
        if self._only_null:
            return np.zeros(len(vector), dtype=np.int32)
        if self._lookup is None:
            return vector.values
        keys = ordered(vector.values)
        least = self._lookup.keys[0]
        if vector.valid is not None:
            keys = np.where(vector.valid, keys, least)
        if self._cells:
            codes = self._lookup.last(keys)
            seen = keys.min(initial=least) >= least
        else:
            codes, found = self._lookup.equal(keys)
            seen = bool(found.all())
        if not seen:
            raise DataError(CHANGED)
        if self._order is not None:
            codes = self._order.take(codes)
        if vector.valid is not None:
            codes[~vector.valid] = self._null
        return codes


def _is_hashed(kind: str) -> bool:
    """Whether values of this type are no numbers of 64 bits."""
    if DECIMAL.fullmatch(kind):
        return int(kind[len("DECIMAL(") :].split(",")[0]) > MOST_DIGITS
    return kind == TEXT or kind in LONG_INTEGERS


def _key(value: str, kind: str) -> str:
    """SQL for a number that stands for a value, and NULL for NULL."""
    if _is_hashed(kind):
        return f"CASE WHEN {value} IS NOT NULL THEN hash({value}) END"
    return f"CAST({value} AS TINYINT)" if kind == "BOOLEAN" else value


def _keys(source: Source, texts: tuple[str, ...] | list[str], kind: str) -> NDArray[np.int64]:
    """The numbers that stand for values that DuckDB prints so. They are one literal: many would be slow to parse."""
    listed = f"SELECT unnest(CAST(CAST({quote_path(json.dumps(texts))} AS JSON) AS VARCHAR[])) AS text"
    sql = f"SELECT {_key(f'CAST(text AS {kind})', kind)} FROM ({listed})"
    parts = [ordered(vector.values).copy() for (vector,) in source.batches(sql)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
