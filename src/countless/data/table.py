"""From a source to codes: the encoded table that training and calibration read."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.schema import Column, LeftOut, Schema
from countless.data.source import Source
from countless.data.types import quote_identifier, stored_type
from countless.errors import DataError, EmptyTableError

MAX_DISTINCT = 10_000
NEAR_UNIQUE_FROM = 1_000  # below this many values a column is small enough, however unique


@dataclass(frozen=True)
class EncodeOptions:
    """Which columns to encode; ``max_distinct`` bounds the values of a column that is modelled."""

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    max_distinct: int = MAX_DISTINCT


@dataclass(frozen=True, eq=False)
class Table:
    """An encoded table: for every position, one code per row, in the smallest unsigned type that holds it."""

    schema: Schema
    codes: tuple[NDArray[Any], ...]

    @property
    def rows(self) -> int:
        return self.schema.rows

    def matrix(self) -> NDArray[Any]:
        """The codes as one (rows, positions) array in the smallest signed type that training can index with."""
        widest = max(self.schema.sizes)
        dtype = np.int8 if widest < 2**7 else np.int16 if widest < 2**15 else np.int32
        return np.stack([code.astype(dtype) for code in self.codes], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the schema and every code: two tables with the same one train alike."""
        digest = hashlib.blake2b(repr(self.schema.to_json()).encode(), digest_size=16)
        for code in self.codes:
            digest.update(np.ascontiguousarray(code).data)
        return digest.hexdigest()

    @classmethod
    def encode(
        cls, source: Any, options: EncodeOptions | None = None, on_stage: Callable[[str], None] | None = None
    ) -> Table:
        """Read ``source`` and replace every value by its code.

        DuckDB finds the distinct values and joins them back, so no more of the raw table is in memory than it
        streams through.
        """
        tell = on_stage or (lambda stage: None)
        source = Source.open(source)
        tell("counting distinct values")
        chosen, left_out, rows = _choose(source, options or EncodeOptions())
        tell("reading domains")
        columns: list[Column] = []
        for index, (name, kind) in enumerate(chosen):
            columns.append(_domain(source, index, name, kind))
        tell("encoding rows")
        codes = _encode(source, columns)
        for index in range(len(columns)):
            source.run(f"DROP TABLE {_dictionary(source, index)}")
        if len(codes[0]) != rows:
            raise DataError("the table changed while it was read: fit again when nothing writes to it")
        return cls(Schema(rows, tuple(columns), tuple(left_out)), codes)


def _choose(source: Source, options: EncodeOptions) -> tuple[list[tuple[str, str]], list[LeftOut], int]:
    """The columns to encode with the type each is modelled in, those left out, and the number of rows."""
    available = source.columns()
    wanted = _wanted([name for name, _ in available], options)
    rows = source.count()
    if rows == 0:
        raise EmptyTableError("the table has no rows: there is nothing to learn from")
    left_out: list[LeftOut] = []
    kept: list[tuple[str, str]] = []
    for name, kind in available:
        modelled = stored_type(kind)
        if name not in wanted:
            left_out.append(LeftOut(name, kind, "it was excluded when the model was fitted"))
        elif modelled is None:
            left_out.append(LeftOut(name, kind, f"columns of type {kind} are not supported"))
        else:
            kept.append((name, modelled))
    distinct = _count_distinct(source, kept, options.max_distinct)
    chosen: list[tuple[str, str]] = []
    for (name, kind), count in zip(kept, distinct, strict=True):
        reason = _too_many(count, rows, options.max_distinct)
        if reason is None:
            chosen.append((name, kind))
        else:
            left_out.append(LeftOut(name, kind, reason))
    if not chosen:
        reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:5])
        raise EmptyTableError(f"no column is left to model ({reasons})")
    order = {name: place for place, (name, _) in enumerate(available)}
    return chosen, sorted(left_out, key=lambda column: order[column.name]), rows


def _wanted(available: list[str], options: EncodeOptions) -> set[str]:
    folded = {name.casefold(): name for name in reversed(available)} | {name: name for name in available}

    def resolve(names: Iterable[str], option: str) -> set[str]:
        found = set()
        for name in names:
            match = folded.get(name, folded.get(name.casefold()))
            if match is None:
                close = difflib.get_close_matches(name, available, 1)
                hint = f'did you mean "{close[0]}"?' if close else f"the columns are {', '.join(available)}"
                raise DataError(f'{option} names an unknown column "{name}": {hint}')
            found.add(match)
        return found

    wanted = set(available) if options.columns is None else resolve(options.columns, "--columns")
    return wanted - resolve(options.exclude, "--exclude")


def _count_distinct(source: Source, columns: list[tuple[str, str]], limit: int) -> list[int]:
    """Distinct values per column: exact where that decides something, estimated where it is far over the limit."""
    if not columns:
        return []
    names = [quote_identifier(name) for name, _ in columns]
    estimates = ", ".join(f"approx_count_distinct({name})" for name in names)
    counts = [int(count) for count in source.rows(f"SELECT {estimates} FROM {source.table}")[0]]
    close = [index for index, count in enumerate(counts) if NEAR_UNIQUE_FROM // 2 < count < 2 * limit]
    if close:
        exact = ", ".join(f"count(DISTINCT {names[index]})" for index in close)
        for index, count in zip(close, source.rows(f"SELECT {exact} FROM {source.table}")[0], strict=True):
            counts[index] = int(count)
    return counts


def _too_many(distinct: int, rows: int, limit: int) -> str | None:
    if distinct > limit:
        return f"it has about {distinct:,} distinct values, more than the {limit:,} that --max-distinct allows"
    if distinct > NEAR_UNIQUE_FROM and distinct * 2 > rows:
        return f"it is nearly unique: {distinct:,} distinct values in {rows:,} rows"
    return None


def _dictionary(source: Source, index: int) -> str:
    """The temporary table that holds the domain of column ``index``, named after the source's own table."""
    return quote_identifier(f"{source.table.strip(chr(34))}_{index}")


def _domain(source: Source, index: int, name: str, kind: str) -> Column:
    table = _dictionary(source, index)
    source.run(
        f"CREATE TEMP TABLE {table} AS "
        "SELECT value, CAST(row_number() OVER (ORDER BY value ASC NULLS LAST) - 1 AS UINTEGER) AS code "
        f"FROM (SELECT DISTINCT CAST({quote_identifier(name)} AS {kind}) AS value FROM {source.table})"
    )
    texts = source.rows(f"SELECT CAST(value AS VARCHAR) FROM {table} ORDER BY code")
    values = tuple(str(text) for (text,) in texts if text is not None)
    return Column(name, kind, values, has_null=len(values) < len(texts))


def _encode(source: Source, columns: list[Column]) -> tuple[NDArray[Any], ...]:
    """One scan that joins every column with its domain; rows keep the source's order."""
    selected, joins = [], []
    for index, column in enumerate(columns):
        selected.append(f"CAST(d{index}.code AS {_code_type(column.size)}) AS c{index}")
        value = f"CAST(rows.{quote_identifier(column.name)} AS {column.type})"
        joins.append(
            f"LEFT JOIN {_dictionary(source, index)} AS d{index} ON {value} IS NOT DISTINCT FROM d{index}.value"
        )
    result = source.arrays(f"SELECT {', '.join(selected)} FROM {source.table} AS rows {' '.join(joins)}")
    return tuple(np.ascontiguousarray(np.ma.getdata(result[f"c{index}"])) for index in range(len(columns)))


def _code_type(size: int) -> str:
    return "UTINYINT" if size <= 2**8 else "USMALLINT" if size <= 2**16 else "UINTEGER"
