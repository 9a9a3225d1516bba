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

from countless.data.digits import to_digits
from countless.data.domains import Domains
from countless.data.quantiles import CELLS, read_grid
from countless.data.schema import LeftOut, Schema
from countless.data.source import Source
from countless.data.types import quote_identifier, stored_type
from countless.errors import DataError, EmptyTableError

MAX_DISTINCT = 100_000
NEAR_UNIQUE_FROM = 1_000  # below this many values a column is small enough, however unique
EXCLUDED = "it was excluded when the model was fitted"
FAR_TOO_MANY = 1.5  # times the limit: from there on an estimate of the number of values is enough


@dataclass(frozen=True)
class EncodeOptions:
    """Which columns to encode; one with more values than ``max_distinct`` becomes a grid."""

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
        options = options or EncodeOptions()
        rows, candidates, left_out = _candidates(source, options)
        if not candidates:
            reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:5])
            raise EmptyTableError(f"no column is left to model ({reasons})")
        tell("reading domains")
        small = {candidate.name: candidate.type for candidate in candidates if not candidate.far_too_many}
        with Domains(source, small) as domains:
            counts = domains.counts()
            columns = []
            for candidate in candidates:
                if candidate.far_too_many or _too_many(candidate.type, counts[candidate.name], rows, options):
                    most_cells = min(CELLS, options.max_distinct)
                    columns.append(read_grid(source, candidate.name, candidate.type, most_cells))
                else:
                    columns.append(domains.column(candidate.name))
            tell("encoding rows")
            encoded = domains.encode(columns)
        codes = tuple(
            digit for column, code in zip(columns, encoded, strict=True) for digit in to_digits(code, column.radices)
        )
        if len(codes[0]) != rows:
            raise DataError("the table changed while it was read: fit again when nothing writes to it")
        return cls(Schema(rows, tuple(columns), tuple(left_out)), codes)


@dataclass(frozen=True)
class _Candidate:
    """A column to model, the type it is modelled in, and whether an estimate says that it has far too many values."""

    name: str
    type: str
    far_too_many: bool


def _candidates(source: Source, options: EncodeOptions) -> tuple[int, list[_Candidate], list[LeftOut]]:
    """The number of rows, the columns to model, and those left out, in the table's order.

    Columns that have far too many values are told by an estimate, so that nobody has to hold them all.
    """
    available = source.columns()
    wanted = _wanted([name for name, _ in available], options)
    counts = ", ".join(f"approx_count_distinct({quote_identifier(name)})" for name, _ in available)
    rows, *distinct = (int(count) for count in source.rows(f"SELECT count(*), {counts} FROM {source.table}")[0])
    if rows == 0:
        raise EmptyTableError("the table has no rows: there is nothing to learn from")
    candidates: list[_Candidate] = []
    left_out: list[LeftOut] = []
    for (name, kind), count in zip(available, distinct, strict=True):
        modelled = stored_type(kind)
        if name not in wanted:
            left_out.append(LeftOut(name, kind, EXCLUDED))
        elif modelled is None:
            left_out.append(LeftOut(name, kind, f"columns of type {kind} are not supported"))
        else:
            limit = FAR_TOO_MANY * max(options.max_distinct, NEAR_UNIQUE_FROM)
            candidates.append(_Candidate(name, modelled, count > limit))
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


def _too_many(kind: str, distinct: int, rows: int, options: EncodeOptions) -> bool:
    """Whether a column has too many values for a code each: more than the limit, or nearly one for every row."""
    if kind == "BOOLEAN":
        return False
    return distinct > options.max_distinct or (distinct > NEAR_UNIQUE_FROM and distinct * 2 > rows)
