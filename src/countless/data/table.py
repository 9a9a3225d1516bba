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

from countless.data.digits import from_digits, to_digits
from countless.data.schema import Column, LeftOut, Schema
from countless.data.source import Source
from countless.data.types import quote_identifier, stored_type
from countless.errors import DataError, EmptyTableError

MAX_DISTINCT = 100_000
NEAR_UNIQUE_FROM = 1_000  # below this many values a column is small enough, however unique
EXCLUDED = "it was excluded when the model was fitted"
FAR_TOO_MANY = 1.5  # times the limit: from there on an estimate of the number of values is enough


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

    def code(self, index: int, row: int) -> int:
        """The code of one row in the column at ``index``."""
        digits = tuple(self.codes[position][row : row + 1] for position in self.schema.positions(index))
        return int(from_digits(digits, self.schema.columns[index].radices)[0])

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
        rows, candidates, left_out = _candidates(source, options := options or EncodeOptions())
        tell("reading domains")
        with _Domains(source, candidates) as domains:
            kept = []
            for column in domains.columns():
                reason = _too_many(len(column.values), rows, options.max_distinct)
                if reason is None:
                    kept.append(column)
                else:
                    left_out.append(LeftOut(column.name, column.type, reason))
            if not kept:
                reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:5])
                raise EmptyTableError(f"no column is left to model ({reasons})")
            tell("encoding rows")
            encoded = domains.encode(kept)
        codes = tuple(
            digit for column, code in zip(kept, encoded, strict=True) for digit in to_digits(code, column.radices)
        )
        if len(codes[0]) != rows:
            raise DataError("the table changed while it was read: fit again when nothing writes to it")
        places = [name for name, _ in source.columns()]
        left_out.sort(key=lambda column: places.index(column.name))
        return cls(Schema(rows, tuple(kept), tuple(left_out)), codes)


def _candidates(source: Source, options: EncodeOptions) -> tuple[int, list[tuple[str, str]], list[LeftOut]]:
    """The number of rows, the columns whose domains to read with the type each is modelled in, and those left out.

    Columns that have far too many values are told by an estimate, so that nobody has to hold them all.
    """
    available = source.columns()
    wanted = _wanted([name for name, _ in available], options)
    counts = ", ".join(f"approx_count_distinct({quote_identifier(name)})" for name, _ in available)
    rows, *distinct = (int(count) for count in source.rows(f"SELECT count(*), {counts} FROM {source.table}")[0])
    if rows == 0:
        raise EmptyTableError("the table has no rows: there is nothing to learn from")
    candidates: list[tuple[str, str]] = []
    left_out: list[LeftOut] = []
    for (name, kind), count in zip(available, distinct, strict=True):
        modelled = stored_type(kind)
        if name not in wanted:
            left_out.append(LeftOut(name, kind, EXCLUDED))
        elif modelled is None:
            left_out.append(LeftOut(name, kind, f"columns of type {kind} are not supported"))
        elif count > FAR_TOO_MANY * max(options.max_distinct, NEAR_UNIQUE_FROM):
            reason = _too_many(count, rows, options.max_distinct)
            left_out.append(LeftOut(name, modelled, f"{reason} (estimated)"))
        else:
            candidates.append((name, modelled))
    return rows, candidates, left_out


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


def _too_many(distinct: int, rows: int, limit: int) -> str | None:
    if distinct > limit:
        return f"it has {distinct:,} distinct values, more than the {limit:,} that --max-distinct allows"
    if distinct > NEAR_UNIQUE_FROM and distinct * 2 > rows:
        return f"it is nearly unique: {distinct:,} distinct values in {rows:,} rows"
    return None


class _Domains:
    """The distinct values of some columns, found in one scan and kept in a temporary table while they are needed."""

    def __init__(self, source: Source, columns: list[tuple[str, str]]) -> None:
        self.source = source
        self.types = dict(columns)
        self.table = quote_identifier(f"{source.name}_domains")

    def __enter__(self) -> _Domains:
        lists = ", ".join(
            [f"list(DISTINCT {self._value(name)}) AS c{index}" for index, name in enumerate(self.types)] or ["NULL"]
        )
        self.source.run(f"CREATE TEMP TABLE {self.table} AS SELECT {lists} FROM {self.source.table} AS rows")
        return self

    def __exit__(self, *_: object) -> None:
        self.source.run(f"DROP TABLE {self.table}")

    def columns(self) -> list[Column]:
        """Every column with its values in order, NULL last."""
        found = []
        for name, kind in self.types.items():
            texts = self.source.rows(f"SELECT CAST(value AS VARCHAR) FROM ({self._codes(name)}) ORDER BY code")
            values = tuple(str(text) for (text,) in texts if text is not None)
            found.append(Column(name, kind, values, has_null=len(values) < len(texts)))
        return found

    def encode(self, columns: list[Column]) -> tuple[NDArray[Any], ...]:
        """One scan that joins every column with its domain; rows keep the source's order."""
        selected, joins = [], []
        for index, column in enumerate(columns):
            selected.append(f"CAST(d{index}.code AS {_code_type(column.size)}) AS c{index}")
            joins.append(
                f"LEFT JOIN ({self._codes(column.name)}) AS d{index} "
                f"ON {self._value(column.name)} IS NOT DISTINCT FROM d{index}.value"
            )
        result = self.source.arrays(f"SELECT {', '.join(selected)} FROM {self.source.table} AS rows {' '.join(joins)}")
        return tuple(np.ascontiguousarray(np.ma.getdata(result[f"c{index}"])) for index in range(len(columns)))

    def _value(self, name: str) -> str:
        """The column's value in the type it is modelled in."""
        return f"CAST(rows.{quote_identifier(name)} AS {self.types[name]})"

    def _codes(self, name: str) -> str:
        """The column's values and their codes."""
        values = f"SELECT unnest(c{list(self.types).index(name)}) AS value FROM {self.table}"
        return f"SELECT value, row_number() OVER (ORDER BY value ASC NULLS LAST) - 1 AS code FROM ({values})"


def _code_type(size: int) -> str:
    return "UTINYINT" if size <= 2**8 else "USMALLINT" if size <= 2**16 else "UINTEGER"
