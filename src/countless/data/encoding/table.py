"""The encoded table: the codes of all rows, which training and calibration read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.cached_property import cached_property
from countless.data.columns.digits import code_type, from_digits
from countless.data.columns.discovery import Scans
from countless.data.columns.grids.grid_knots import CELLS
from countless.data.columns.names import unknown_columns
from countless.data.columns.schema import Column, LeftOut, Schema
from countless.data.columns.strings.text import Strings, symbol_type
from countless.data.columns.types import TEXT, stored_type
from countless.data.datasets import Advice
from countless.data.encoding.blocks import BLOCK_ROWS, blocks
from countless.data.encoding.encoder import CHANGED, Encoder
from countless.data.progress import QUIET, Events, Meter
from countless.data.sources.source import Source
from countless.errors import DataError, EmptyTableError, OptionError
from countless.options import EncodeOptions

LONG_FROM = 12.0  # mean length of strings: from here on a column with too many values is text
NEAR_UNIQUE_FROM = 1_000  # below this many values a column is small enough, however unique
EXCLUDED = "it was excluded when the model was fitted"
VALUES_AT_ONCE = 2_000_000  # found in one scan, of several columns together
LENGTH_BYTES, ORDER_BYTES = 4, 12  # per row: the length of its string, and its position in a shuffled epoch
FAR_TOO_MANY = 1.5  # times the limit: above that an estimate of the number of values is enough


@dataclass(frozen=True, eq=False)
class Mapped:
    """The codes of a table in files, in random order.

    ``matrix`` has all codes (rows, positions), unless there are only text columns. They are read in windows of
    ``window`` rows. ``digest`` identifies them.
    """

    matrix: NDArray[Any] | None
    window: int
    digest: str


@dataclass(frozen=True, eq=False)
class Table:
    """An encoded table: for every position, one code per row, in the smallest unsigned type that holds it.

    ``strings`` has the symbols of each of the schema's text columns. If the table is ``mapped``, all of these are in
    files (:mod:`countless.data.encoding.out_of_core`).
    """

    schema: Schema
    codes: tuple[NDArray[Any], ...]
    strings: tuple[Strings, ...] = ()
    mapped: Mapped | None = None

    @property
    def rows(self) -> int:
        return self.schema.rows

    @property
    def encoded_rows(self) -> int:
        """Number of rows that have codes or strings: fewer than :attr:`rows` if they are a sample."""
        if not self.codes and not self.strings:  # only text, on which no network is trained
            return self.rows
        return len(self.codes[0] if self.codes else self.strings[0].symbols)

    @property
    def window(self) -> int | None:
        """Number of rows to read together; None if they are in memory."""
        return None if self.mapped is None else self.mapped.window

    def matrix(self) -> NDArray[Any]:
        """The codes as one (rows, positions) array in the smallest signed type that training can index with."""
        return self._matrix if self.mapped is None or self.mapped.matrix is None else self.mapped.matrix

    @cached_property
    def _matrix(self) -> NDArray[Any]:
        return np.stack([code.astype(code_type(self.schema.sizes)) for code in self.codes], axis=1)

    def blocks(self) -> Iterator[list[IntArray]]:
        """The codes of the rows, one array per column, whatever its number of positions; a block of rows at a time."""
        if self.mapped is not None and self.mapped.matrix is not None:
            position_blocks = (tuple(block.T) for block in blocks(self.mapped.matrix))
        else:
            position_blocks = (
                tuple(code[first : first + BLOCK_ROWS] for code in self.codes)
                for first in range(0, len(self.codes[0]), BLOCK_ROWS)
            )
        for block_codes in position_blocks:
            yield [
                from_digits(tuple(block_codes[position] for position in span), column.radices)
                for span, column in zip(self.schema.spans, self.schema.modelled, strict=True)
            ]

    @cached_property
    def counts(self) -> tuple[IntArray, ...]:
        """Number of rows with each code of each column."""
        totals = tuple(np.zeros(column.size, dtype=np.int64) for column in self.schema.modelled)
        for block in self.blocks():
            for counts, codes in zip(totals, block, strict=True):
                counts += np.bincount(codes, minlength=len(counts))
        return totals

    @cached_property
    def symbol_counts(self) -> list[IntArray]:
        """Number of rows with each symbol of each position."""
        return position_counts(self.schema.modelled, self.counts)

    def sampled(self, rows: int, seed: int) -> Table:
        """This table with the codes of random ``rows`` only; of files, which are shuffled, the first ones."""
        if rows >= self.rows:
            return self
        if self.mapped is not None:
            matrix = None if self.mapped.matrix is None else self.mapped.matrix[:rows]
            strings = tuple(Strings(text.symbols[:rows], text.lengths[:rows]) for text in self.strings)
            mapped = Mapped(matrix, self.mapped.window, f"{self.mapped.digest}-{rows}")
            return Table(self.schema, tuple(code[:rows] for code in self.codes), strings, mapped)
        sample = np.sort(np.random.default_rng(seed).choice(self.rows, size=rows, replace=False, shuffle=False))
        strings = tuple(Strings(text.symbols[sample], text.lengths[sample]) for text in self.strings)
        return Table(self.schema, tuple(code[sample] for code in self.codes), strings)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the schema and all codes: two tables with the same digest train alike."""
        if self.mapped is not None:
            return self.mapped.digest
        digest = hashlib.blake2b(repr(self.schema.to_json()).encode(), digest_size=16)
        for code in (*self.codes, *(strings.symbols for strings in self.strings)):
            digest.update(np.ascontiguousarray(code).data)
        return digest.hexdigest()

    @classmethod
    def encode(
        cls,
        source: Any,
        options: EncodeOptions | None = None,
        events: Events = QUIET,
    ) -> Table:
        """Read ``source`` and replace every value by its code; the rows keep their order.

        DuckDB finds the distinct values, and then streams the rows, so that only a few batches of the raw table are in
        memory.
        """
        options = options or EncodeOptions()
        source = Source.open(source, flatten=options.flatten)
        return cls.encode_rows(source, read_schema(source, options, events), events)

    @classmethod
    def encode_rows(cls, source: Source, schema: Schema, events: Events = QUIET) -> Table:
        """The encoded rows of ``source``, whose ``schema`` is known."""
        events.stage("encoding rows")
        meter = Meter(events.reading, schema.rows)
        codes = tuple(np.empty(schema.rows, dtype=np.min_scalar_type(radix - 1)) for radix in schema.sizes)
        strings = tuple(
            Strings(
                np.empty((schema.rows, text.length + 1), dtype=symbol_type(text)), np.empty(schema.rows, dtype=np.int32)
            )
            for text in schema.texts
        )
        done = 0
        for batch in Encoder(source, schema).batches():
            end = done + batch.rows
            if end > schema.rows:
                raise DataError(CHANGED)
            for column_codes, batch_codes in zip(codes, batch.codes, strict=True):
                column_codes[done:end] = batch_codes
            for text, batch_text in zip(strings, batch.strings, strict=True):
                text.symbols[done:end], text.lengths[done:end] = batch_text.symbols, batch_text.lengths
            done = end
            meter.at(done / schema.rows)
        if done != schema.rows:
            raise DataError(CHANGED)
        return cls(schema, codes, strings)


def with_advice(options: EncodeOptions, advice: Advice) -> EncodeOptions:
    """The options, completed by ``advice`` where the user chose nothing."""
    decided = {name.casefold() for name in (*options.text, *options.no_text)}
    added = tuple(name for name in advice.text if name.casefold() not in decided)
    length = advice.max_length if options.max_length is None else options.max_length
    return replace(options, text=options.text + added, max_length=length)


def position_counts(columns: Sequence[Column], counts: Sequence[IntArray]) -> list[IntArray]:
    """Number of rows with each symbol of each position, given those with each code of each column."""
    symbol_counts: list[IntArray] = []
    for column, code_counts in zip(columns, counts, strict=True):
        padded = np.zeros(int(np.prod(column.radices)), dtype=np.int64)
        padded[: len(code_counts)] = code_counts
        cube = padded.reshape(column.radices)
        for digit in range(len(column.radices)):
            other_digits = tuple(axis for axis in range(len(column.radices)) if axis != digit)
            symbol_counts.append(cube.sum(axis=other_digits))
    return symbol_counts


def bytes_in_memory(schema: Schema, text_rows: int | None = None) -> int:
    """Bytes of a table during training in memory: its codes twice, its strings, and the order of its rows.

    If only ``text_rows`` rows have their strings, these rows are in memory a second time.
    """
    codes = sum(np.min_scalar_type(radix - 1).itemsize for radix in schema.sizes)
    matrix = len(schema.sizes) * code_type(schema.sizes).itemsize
    strings = sum((text.length + 1) * symbol_type(text).itemsize + LENGTH_BYTES for text in schema.texts)
    if text_rows is None:
        return schema.rows * (codes + matrix + strings + ORDER_BYTES)
    return schema.rows * codes + text_rows * (codes + matrix + strings + ORDER_BYTES)


def read_schema(source: Source, options: EncodeOptions | None = None, events: Events = QUIET) -> Schema:
    """The schema of ``source``, with domains, grids and alphabets."""

    def tell(stage: str, rows: int | None = None) -> None:
        events.stage(stage)
        source.watch = Meter(events.reading, rows)

    options = with_advice(options or EncodeOptions(), source.advice)
    try:
        return find_schema(Scans(source), options, tell)
    finally:
        source.watch = None


def find_schema(finder: Scans, options: EncodeOptions, tell: Callable[..., None]) -> Schema:
    """The schema of the table that ``finder`` scans; ``tell`` gets the name of each stage and its number of rows."""
    tell("counting distinct values")
    rows, candidates, left_out = _candidates(finder, options)
    if not candidates:
        reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:5])
        raise EmptyTableError(f"no column is left to model ({reasons})")
    tell("reading domains", rows)
    small_columns = _small_columns(finder, candidates, rows, options)
    columns, texts = [], []
    for candidate in candidates:
        small = small_columns.get(candidate.name)
        if small is not None:
            columns.append(small)
        elif candidate.is_text(True):
            tell(f"reading the alphabet of {candidate.name}", rows)
            texts.append(finder.text(candidate.name, candidate.type, rows, options.max_length))
        else:
            tell(f"reading the grid of {candidate.name}", rows)
            columns.append(finder.grid(candidate.name, candidate.type, min(CELLS, options.max_distinct)))
    uuids = tuple(candidate.name for candidate in candidates if candidate.name in finder.source.uuids)
    signed = tuple(candidate.name for candidate in candidates if candidate.name in finder.signed())
    return Schema(rows, (*columns, *texts), tuple(left_out), uuids, signed).with_calendar()


def _small_columns(finder: Scans, candidates: list[_Candidate], rows: int, options: EncodeOptions) -> dict[str, Column]:
    """The columns with a code for every value, by name, read in as few scans as memory allows."""
    groups: list[dict[str, _Candidate]] = [{}]
    values = 0
    for candidate in candidates:
        if candidate.far_too_many or candidate.is_text(False):
            continue
        if values + candidate.about > VALUES_AT_ONCE and groups[-1]:
            groups.append({})
            values = 0
        groups[-1][candidate.name] = candidate
        values += candidate.about
    types = {candidate.name: candidate.type for candidate in candidates}
    columns: dict[str, Column] = {}
    for group in filter(None, groups):
        columns |= finder.domains(
            {name: types[name] for name in group},
            lambda name, count: not _too_many(types[name], count, rows, options),
        )
    return columns


@dataclass(frozen=True)
class _Candidate:
    """A column to model, the type it is modelled in, and whether it seems to have far too many values."""

    name: str
    type: str
    about: int  # its approximate number of values
    far_too_many: bool
    mean_length: float | None = None  # of a column of strings
    text: bool | None = None  # whether to model it character by character; None if the options do not say

    def is_text(self, too_many: bool) -> bool:
        """Whether to model it character by character: as the options say, else if it has many, long strings."""
        if self.text is not None:
            return self.text
        return too_many and self.mean_length is not None and self.mean_length >= LONG_FROM


def _candidates(finder: Scans, options: EncodeOptions) -> tuple[int, list[_Candidate], list[LeftOut]]:
    """The number of rows, the columns to model, and those left out, in the table's order.

    Columns with far too many values are recognized by an estimate, so that their values need not be held in memory.
    """
    available = finder.source.columns()
    requested = _requested([name for name, _ in available], options)
    forced = _forced([name for name, _ in available], options)
    rows, statistics = finder.statistics(requested)
    if rows == 0:
        raise EmptyTableError("the table has no rows: there is nothing to learn from")
    candidates: list[_Candidate] = []
    left_out: list[LeftOut] = []
    for (name, kind), (count, mean_length) in zip(available, statistics, strict=True):
        modelled = stored_type(kind)
        if name not in requested:
            left_out.append(LeftOut(name, kind, EXCLUDED))
        elif modelled is None:
            reason = finder.source.left_structs.get(name, f"columns of type {kind} are not supported")
            left_out.append(LeftOut(name, kind, reason))
        else:
            limit = FAR_TOO_MANY * max(options.max_distinct, NEAR_UNIQUE_FROM)
            if forced.get(name) and modelled != TEXT:
                raise OptionError(f'{{text}} names "{name}", which is {kind}: only strings can be modelled as text')
            candidates.append(_Candidate(name, modelled, count, count > limit, mean_length, forced.get(name)))
    return rows, candidates, left_out


def _requested(available: list[str], options: EncodeOptions) -> set[str]:
    """The columns that the options ask for."""
    requested = set(available) if options.columns is None else _resolve(options.columns, available, "columns")
    return requested - _resolve(options.exclude, available, "exclude")


def _forced(available: list[str], options: EncodeOptions) -> dict[str, bool]:
    """For each column that the options name, whether it is text."""
    yes, no = _resolve(options.text, available, "text"), _resolve(options.no_text, available, "no_text")
    return dict.fromkeys(no, False) | dict.fromkeys(yes, True)


def _resolve(names: Iterable[str], available: list[str], option: str) -> set[str]:
    """The columns that ``option`` names, as the table spells them; a struct's name stands for all of its fields."""
    folded = {name.casefold(): name for name in reversed(available)} | {name: name for name in available}
    resolved, unknown = set(), []
    for name in names:
        match = folded.get(name, folded.get(name.casefold()))
        matches = [match] if match is not None else _fields_of(name, available)
        unknown += [] if matches else [name]
        resolved.update(matches)
    if unknown:
        raise OptionError(f"{{{option}}} {unknown_columns(unknown, available)}")
    return resolved


def _fields_of(struct: str, available: list[str]) -> list[str]:
    """The columns that are fields of ``struct``, at any depth."""
    return [name for name in available if name.casefold().startswith(f"{struct.casefold()}.")]


def _too_many(kind: str, distinct: int, rows: int, options: EncodeOptions) -> bool:
    """Whether a column has too many values for a code each: more than the limit, or on average under two rows each."""
    if kind == "BOOLEAN":
        return False
    return distinct > options.max_distinct or (distinct > NEAR_UNIQUE_FROM and distinct * 2 > rows)


def modelled_names(source: Source, options: EncodeOptions) -> list[str]:
    """The names of the columns that :meth:`Table.encode` would model; no row is read."""
    available = source.columns()
    requested = _requested([name for name, _ in available], options)
    return [name for name, kind in available if name in requested and stored_type(kind) is not None]
