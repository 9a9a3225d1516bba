"""Evidence: a uniform random sample of the table's rows, which is kept beside the model and counted.

Every column of the sample has codes. A column that has a code for each value in the model has the same codes here. A
grid's column, or one of text, has codes of the values that the sample itself holds: so nothing is rounded or cut.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.cached_property import cached_property
from countless.data.columns.printed_values import are_printed
from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TEXT, quote_identifier, sql_texts
from countless.data.front_coding import front_coded, front_decoded
from countless.errors import ModelFileError

if TYPE_CHECKING:
    import duckdb

    from countless.data.encoding.schema_growth import Growth
    from countless.data.sources.source import Source

DEFAULT_ROWS = 100_000  # as many as the sample that one would keep instead of a model; a smaller table is kept whole
MOST_DEFAULT_ROWS = 500_000  # of a large table; between them one
DEFAULT_ONE_IN = 100  # rows
DEVIATIONS = 5.0  # by which the number of old rows in a larger sample may be above its mean, and all be there
WORTH_SORTING = 0.95  # of the bytes of rows in one order: another one must save the rest
MOST_HYPERGEOMETRIC = 10**9  # rows of which NumPy can draw so
EVIDENCE_STREAM = 23  # keeps the random numbers of the rows apart from others of the seed


@dataclass(frozen=True, eq=False)
class EvidenceRows:
    """Rows of a table: for every column of its schema, in the same order, the code of each row.

    ``schema`` is that of the sample: its columns are those of the table, text included, and all of them have codes.
    The rows are in no meaningful order.
    """

    schema: Schema
    codes: tuple[NDArray[Any], ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.schema.rows

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """What others derived from the rows and keep with them, by what it is."""
        return {}

    @classmethod
    def drawn(cls, source: Source, schema: Schema, count: int, seed: int) -> EvidenceRows:
        """``count`` random rows of ``source``, the table of ``schema``; all of them if it has no more."""
        if count >= schema.rows:
            return cls._encoded(source, schema)
        own_seed = int(np.random.SeedSequence([seed, EVIDENCE_STREAM]).generate_state(1)[0])
        with source.sample_table(count, own_seed, schema.names, schema.rows) as some:
            return cls._encoded(some, replace(schema, rows=count))

    @classmethod
    def _encoded(cls, some: Source, schema: Schema) -> EvidenceRows:
        """All rows of a source."""
        from countless.data.columns.discovery import Scans
        from countless.data.encoding.table import Table

        wide = {column.name: column.type for column in schema.columns if not has_codes(column)}
        found = Scans(some).domains(wide, lambda name, count: True) if wide else {}
        columns = tuple(found.get(column.name, column) for column in schema.columns)
        own = replace(schema, columns=columns, calendar=())
        table = Table.encode_rows(some, own)
        return cls.of(own, [np.concatenate(parts) for parts in zip(*table.blocks(), strict=True)])

    @classmethod
    def of(cls, schema: Schema, codes: list[NDArray[Any]]) -> EvidenceRows:
        """Rows in an order in which they pack well: by the columns of few values first, or by those of many values."""
        narrow = [
            own.astype(np.min_scalar_type(column.size - 1)) for own, column in zip(codes, schema.coded, strict=True)
        ]
        by_size = sorted(range(len(narrow)), key=lambda index: -schema.coded[index].size)
        orders = [np.lexsort([narrow[index] for index in keys]) for keys in (by_size, by_size[::-1])]
        packed = [sum(len(zlib.compress(_planes(own[order]).tobytes(), 1)) for own in narrow) for order in orders]
        order = orders[packed[1] < WORTH_SORTING * packed[0]]
        return cls(schema, tuple(own[order] for own in narrow))

    def source(self) -> Source:
        """The rows as a table in a DuckDB of its own, with the table's names, types and values, in this order."""
        from countless.data.sources.source import Source, connect, new_name

        name, codes, connection = new_name(), new_name(), connect()
        connection.register(codes, {f"c{index}": own for index, own in enumerate(self.codes)})
        # NULL's code is the place after the last value, where a list has NULL.
        values = ", ".join(
            f"CAST({sql_texts(column.values)} AS {column.type}[])[CAST(c{index} AS BIGINT) + 1] "
            f"AS {quote_identifier(column.name)}"
            for index, column in enumerate(self.schema.coded)
        )
        found = Source(name, connection, None)
        found.run(f"CREATE TEMP TABLE {found.table} AS SELECT {values} FROM {quote_identifier(codes)}")
        connection.unregister(codes)
        return found

    def updated(self, growth: Growth, new: Source, wanted: int, seed: int) -> EvidenceRows:
        """A uniform sample of the table after ``new`` rows, of ``wanted`` rows if this many can be had.

        These are rows of this sample, chosen at random, and of the new ones: this many of each as a sample of the whole
        table would have. Only values of rows that are left stay.
        """
        from countless.data.sources.connection import connect

        rng = np.random.default_rng([seed, EVIDENCE_STREAM])
        added = growth.schema.rows - growth.old.rows
        kept, drawn = updated_shares(self.rows, growth.old.rows, added, wanted, rng)
        places = rng.choice(self.rows, kept, replace=False)
        old = [own[places] for own in self.codes]
        fresh = EvidenceRows.drawn(new, replace(growth.schema, rows=added), drawn, seed) if drawn else None
        connection = connect()
        columns, codes = [], []
        for index, column in enumerate(growth.schema.columns):
            more = None if fresh is None else (fresh.schema.coded[index], fresh.codes[index])
            if has_codes(column):
                moved = growth.codes(index)[old[index]]
                codes.append(moved if more is None else np.concatenate([moved, more[1]]))
            else:
                before = (self.schema.coded[index], old[index])
                column, own = _merged(connection, [before] if more is None else [before, more])
                codes.append(own)
            columns.append(column)
        return self.of(replace(growth.schema, rows=kept + drawn, columns=tuple(columns), calendar=()), codes)

    def arrays(self, table: Schema) -> dict[str, NDArray[Any]]:
        """The rows as arrays by name, for the model file of a ``table``."""
        found: dict[str, NDArray[Any]] = {}
        for index, (own, column) in enumerate(zip(self.codes, self.schema.coded, strict=True)):
            found[f"codes-{index}"] = _planes(own)
            if not has_codes(table.columns[index]):
                found[f"values-{index}"], found[f"shared-{index}"] = front_coded(column.values)
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], table: Schema) -> EvidenceRows:
        """The rows that :meth:`arrays` wrote; anything else is a :class:`ModelFileError`."""
        columns, codes = [], []
        for index, column in enumerate(table.columns):
            try:
                own = _codes(arrays[f"codes-{index}"])
                if not has_codes(column):
                    values = front_decoded(arrays[f"values-{index}"], arrays[f"shared-{index}"])
                    column = Column(column.name, column.type, values, bool(own.max(initial=0) == len(values)))
                    if not are_printed(column.type, values):
                        raise ValueError("these are not values of that type")
            except (LookupError, ValueError):
                raise _damaged(column.name) from None
            assert not column.is_text
            if own.max(initial=0) >= column.size:
                raise _damaged(column.name)
            columns.append(column)
            codes.append(own)
        if len({len(own) for own in codes}) != 1 or not 0 < len(codes[0]) <= table.rows:
            raise ModelFileError("the model file is damaged: its evidence rows have several lengths; fit it again")
        return cls(replace(table, rows=len(codes[0]), columns=tuple(columns), calendar=()), tuple(codes))


@dataclass(frozen=True, eq=False)
class Hits:
    """The evidence ``rows``, and ``marks`` of those that satisfy a condition; ``count`` is how many these are."""

    rows: EvidenceRows
    marks: BoolArray
    count: int

    @classmethod
    def of(cls, rows: EvidenceRows, marks: BoolArray) -> Hits:
        """The rows that are marked."""
        return cls(rows, marks, int(np.count_nonzero(marks)))

    def codes(self, index: int) -> IntArray:
        """The code of each hit in the column at ``index``."""
        return self.rows.codes[index][self.marks].astype(np.int64)


def has_codes(column: Any) -> bool:
    """Whether a column of a table has a code for each of its values."""
    return not column.is_text and column.grid is None


def evidence_rows(wanted: str, rows: int) -> int:
    """How many rows to keep of a table of this many: a number, a percentage, ``all``, ``none`` or ``auto``.

    >>> [evidence_rows("auto", rows) for rows in (500, 48_842, 300_000, 60_000_000)]
    [500, 48842, 100000, 500000]
    >>> [evidence_rows(wanted, 200_000) for wanted in ("50000", "5%", "all", "none")]
    [50000, 10000, 200000, 0]
    """
    if wanted == "auto":
        return min(rows, max(DEFAULT_ROWS, min(MOST_DEFAULT_ROWS, rows // DEFAULT_ONE_IN)))
    if wanted in ("all", "none"):
        return rows if wanted == "all" else 0
    if wanted.endswith("%"):
        return max(1, round(rows * float(wanted[:-1]) / 100))
    return min(rows, int(wanted))


def updated_shares(held: int, rows: int, added: int, wanted: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many old rows and how many new ones a uniform sample has, after a table of ``rows`` rows gets ``added`` more.

    The old ones are taken from a sample of ``held``. If that is not the whole table, a larger sample may have more old
    rows than are there: then it is only so large that this hardly happens.

    >>> rng = np.random.default_rng(0)
    >>> updated_shares(500, 500, 20, 520, rng), updated_shares(300, 500, 0, 300, rng)
    ((500, 20), (300, 0))
    >>> kept, drawn = updated_shares(10_000, 100_000, 100_000, 20_000, rng)
    >>> kept <= 10_000, 19_000 < kept + drawn < 20_000
    (True, True)
    """
    size = min(wanted, rows + added)
    if held < rows and size > held:
        share = rows / (rows + added)
        # The greatest size whose mean number of old rows, and this many deviations more, are held.
        margin = DEVIATIONS * np.sqrt(1 - share)
        root = (np.sqrt(margin**2 + 4 * held) - margin) / 2
        size = max(held, min(size, int(root**2 / share)))
    while True:
        fresh = _new_among(size, rows, added, rng)
        if size - fresh <= held:
            return size - fresh, fresh


def _new_among(size: int, rows: int, added: int, rng: np.random.Generator) -> int:
    """How many new rows a uniform sample has."""
    if rows + added < MOST_HYPERGEOMETRIC:
        return int(rng.hypergeometric(added, rows, size))
    return int(rng.binomial(size, added / (rows + added)))  # of so large a table it is the same


def _merged(
    connection: duckdb.DuckDBPyConnection, parts: list[tuple[Column, NDArray[Any]]]
) -> tuple[Column, NDArray[Any]]:
    """A column of the values that some codes of several columns stand for, and all codes in it."""
    first = parts[0][0]
    used = [np.unique(codes[codes != column.null]) for column, codes in parts]
    texts = [column.values[code] for (column, _), own in zip(parts, used, strict=True) for code in own]
    value = 'text COLLATE "binary"' if first.type == TEXT else f"CAST(text AS {first.type})"
    ranked = (
        f"SELECT text, dense_rank() OVER (ORDER BY {value}) - 1 AS code "
        f"FROM (SELECT unnest({sql_texts(texts)}) AS text, unnest(range({len(texts)})) AS place) ORDER BY place"
    )
    found = connection.execute(ranked).fetchall()
    places: IntArray = np.array([code for _, code in found], dtype=np.int64)
    values = {code: text for text, code in found}
    null, codes, start = len(values), [], 0
    for (column, own), these in zip(parts, used, strict=True):
        table = np.full(column.null + 1, null)
        table[these] = places[start : start + len(these)]
        codes.append(table[own])
        start += len(these)
    every = np.concatenate(codes)
    merged = Column(first.name, first.type, tuple(values[code] for code in range(null)), bool((every == null).any()))
    return merged, every


def _planes(codes: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of codes: all low bytes together, then the next ones. They pack better."""
    planes: NDArray[np.uint8] = codes.view(np.uint8).reshape(len(codes), -1).T
    return planes


def _codes(planes: NDArray[Any]) -> NDArray[Any]:
    """The codes whose bytes are in ``planes``."""
    if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) not in (1, 2, 4):
        raise ValueError("these are no codes")
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}")[:, 0]


def _damaged(name: str) -> ModelFileError:
    return ModelFileError(f'the model file is damaged: its evidence rows do not fit "{name}"; fit it again')
