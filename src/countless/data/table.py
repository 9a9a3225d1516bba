"""From a source to codes: the encoded table that training and calibration read."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.alphabet import read_text
from countless.data.digits import to_digits
from countless.data.domains import Domains
from countless.data.papers import Advice
from countless.data.quantiles import CELLS, read_grid
from countless.data.schema import LeftOut, Schema
from countless.data.source import Source
from countless.data.text import Strings
from countless.data.types import TEXT, quote_identifier, stored_type
from countless.errors import DataError, EmptyTableError

MAX_DISTINCT = 100_000
LONG_FROM = 12.0  # characters of a string, in the mean: from there on a column with too many values is text
MOST_LENGTH = 10_000
NEAR_UNIQUE_FROM = 1_000  # below this many values a column is small enough, however unique
EXCLUDED = "it was excluded when the model was fitted"
FAR_TOO_MANY = 1.5  # times the limit: from there on an estimate of the number of values is enough


@dataclass(frozen=True)
class EncodeOptions:
    """Which columns to encode; one with more values than ``max_distinct`` becomes a grid, or text.

    ``text`` names columns to be modelled character by character, ``no_text`` such as must not be. Of text no more than
    ``max_length`` characters are read.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    max_distinct: int = MAX_DISTINCT
    text: tuple[str, ...] = ()
    no_text: tuple[str, ...] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        others = {name.casefold() for name in self.no_text}
        both = [name for name in self.text if name.casefold() in others]
        if both:
            raise DataError(f'"{both[0]}" is named by --text and by --no-text: it can be only one of them')
        if self.max_length is not None and not 1 <= self.max_length <= MOST_LENGTH:
            raise DataError(f"--max-length must be between 1 and {MOST_LENGTH}, not {self.max_length}")

    def advised(self, advice: Advice) -> EncodeOptions:
        """The same with what ``advice`` adds where nothing was chosen."""
        decided = {name.casefold() for name in (*self.text, *self.no_text)}
        added = tuple(name for name in advice.text if name.casefold() not in decided)
        length = advice.max_length if self.max_length is None else self.max_length
        return replace(self, text=self.text + added, max_length=length)


@dataclass(frozen=True, eq=False)
class Table:
    """An encoded table: for every position, one code per row, in the smallest unsigned type that holds it.

    ``strings`` has the symbols of each of the schema's text columns.
    """

    schema: Schema
    codes: tuple[NDArray[Any], ...]
    strings: tuple[Strings, ...] = ()

    @property
    def rows(self) -> int:
        return self.schema.rows

    def matrix(self) -> NDArray[Any]:
        """The codes as one (rows, positions) array in the smallest signed type that training can index with."""
        widest = max(self.schema.sizes)
        dtype = np.int8 if widest < 2**7 else np.int16 if widest < 2**15 else np.int32
        return np.stack([code.astype(dtype) for code in self.codes], axis=1)

    def column_codes(self) -> list[NDArray[np.int64]]:
        """One code per row of every column, whatever its number of positions."""
        found = []
        for index, column in enumerate(self.schema.columns):
            digits = [self.codes[position].astype(np.int64) for position in self.schema.positions(index)]
            found.append(np.ravel_multi_index(digits, column.radices))
        return found

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the schema and every code: two tables with the same one train alike."""
        digest = hashlib.blake2b(repr(self.schema.to_json()).encode(), digest_size=16)
        for code in (*self.codes, *(strings.symbols for strings in self.strings)):
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
        options = (options or EncodeOptions()).advised(source.advice)
        rows, candidates, left_out = _candidates(source, options)
        if not candidates:
            reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:5])
            raise EmptyTableError(f"no column is left to model ({reasons})")
        tell("reading domains")
        small = {candidate.name: candidate.type for candidate in candidates if not candidate.far_too_many}
        columns, texts = [], []
        with Domains(source, small) as domains:
            counts = domains.counts()
            for candidate in candidates:
                many = candidate.far_too_many or _too_many(candidate.type, counts[candidate.name], rows, options)
                if candidate.is_text(many):
                    texts.append(candidate)
                elif many:
                    most_cells = min(CELLS, options.max_distinct)
                    columns.append(read_grid(source, candidate.name, candidate.type, most_cells))
                else:
                    columns.append(domains.column(candidate.name))
            tell("encoding rows")
            encoded = domains.encode(columns) if columns else ()
        codes = tuple(
            digit for column, code in zip(columns, encoded, strict=True) for digit in to_digits(code, column.radices)
        )
        if any(len(code) != rows for code in codes):
            raise DataError("the table changed while it was read: fit again when nothing writes to it")
        read = [read_text(source, text.name, text.type, options.max_length, tell) for text in texts]
        schema = Schema(rows, tuple(columns), tuple(left_out), tuple(column for column, _ in read))
        return cls(schema, codes, tuple(strings for _, strings in read))


@dataclass(frozen=True)
class _Candidate:
    """A column to model, the type it is modelled in, and whether an estimate says that it has far too many values."""

    name: str
    type: str
    far_too_many: bool
    mean_length: float | None = None  # of a column of strings
    text: bool | None = None  # whether to model it character by character, if the options say so

    def is_text(self, too_many: bool) -> bool:
        """Whether it is modelled character by character: as asked for, or else if its strings are long and many."""
        if self.text is not None:
            return self.text
        return too_many and self.mean_length is not None and self.mean_length >= LONG_FROM


def _candidates(source: Source, options: EncodeOptions) -> tuple[int, list[_Candidate], list[LeftOut]]:
    """The number of rows, the columns to model, and those left out, in the table's order.

    Columns that have far too many values are told by an estimate, so that nobody has to hold them all.
    """
    available = source.columns()
    wanted = _wanted([name for name, _ in available], options)
    forced = _forced([name for name, _ in available], options)
    facts = []
    for name, kind in available:
        column = quote_identifier(name)
        length = f"avg(length(CAST({column} AS VARCHAR)))" if stored_type(kind) == TEXT else "NULL"
        facts.append(f"approx_count_distinct({column}), {length}")
    rows, *found = source.rows(f"SELECT count(*), {', '.join(facts)} FROM {source.table}")[0]
    if rows == 0:
        raise EmptyTableError("the table has no rows: there is nothing to learn from")
    candidates: list[_Candidate] = []
    left_out: list[LeftOut] = []
    for (name, kind), count, mean_length in zip(available, found[::2], found[1::2], strict=True):
        modelled = stored_type(kind)
        if name not in wanted:
            left_out.append(LeftOut(name, kind, EXCLUDED))
        elif modelled is None:
            left_out.append(LeftOut(name, kind, f"columns of type {kind} are not supported"))
        else:
            limit = FAR_TOO_MANY * max(options.max_distinct, NEAR_UNIQUE_FROM)
            if forced.get(name) and modelled != TEXT:
                raise DataError(f'--text names "{name}", which is {kind}: only strings can be modelled as text')
            candidates.append(_Candidate(name, modelled, count > limit, mean_length, forced.get(name)))
    return int(rows), candidates, left_out


def _wanted(available: list[str], options: EncodeOptions) -> set[str]:
    wanted = set(available) if options.columns is None else _resolve(options.columns, available, "--columns")
    return wanted - _resolve(options.exclude, available, "--exclude")


def _forced(available: list[str], options: EncodeOptions) -> dict[str, bool]:
    """The columns of which the options say whether they are text."""
    yes, no = _resolve(options.text, available, "--text"), _resolve(options.no_text, available, "--no-text")
    return dict.fromkeys(no, False) | dict.fromkeys(yes, True)


def _resolve(names: Iterable[str], available: list[str], option: str) -> set[str]:
    """The columns that ``option`` names, as the table spells them."""
    folded = {name.casefold(): name for name in reversed(available)} | {name: name for name in available}
    found = set()
    for name in names:
        match = folded.get(name, folded.get(name.casefold()))
        if match is None:
            close = difflib.get_close_matches(name, available, 1)
            hint = f'did you mean "{close[0]}"?' if close else f"the columns are {', '.join(available)}"
            raise DataError(f'{option} names an unknown column "{name}": {hint}')
        found.add(match)
    return found


def _too_many(kind: str, distinct: int, rows: int, options: EncodeOptions) -> bool:
    """Whether a column has too many values for a code each: more than the limit, or nearly one for every row."""
    if kind == "BOOLEAN":
        return False
    return distinct > options.max_distinct or (distinct > NEAR_UNIQUE_FROM and distinct * 2 > rows)


def columns_and_texts(source: Any, options: EncodeOptions | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that :meth:`Table.encode` would model, and those it would model as text, without encoding any."""
    source = Source.open(source)
    options = (options or EncodeOptions()).advised(source.advice)
    rows, candidates, _ = _candidates(source, options)
    columns: list[str] = []
    texts: list[str] = []
    for candidate in candidates:
        many = candidate.far_too_many
        if not many and candidate.is_text(True) and not candidate.is_text(False):  # only then does the number decide
            found = source.rows(f"SELECT count(DISTINCT {quote_identifier(candidate.name)}) FROM {source.table}")
            many = _too_many(candidate.type, int(found[0][0]), rows, options)
        (texts if candidate.is_text(many) else columns).append(candidate.name)
    return tuple(columns), tuple(texts)
