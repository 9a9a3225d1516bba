"""Evidence rows: a uniform random sample of the table's rows, stored in the model file to be counted.

Every column of the sample has codes. If the model has a code for each value of a column, the codes here are the same. A
column with a grid, and a text column, has a code for each value in the sample instead: so no value is rounded or cut.
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

# By default one row in 100 is stored, but at least and at most this many; a table of fewer rows is stored whole.
DEFAULT_ONE_IN = 100
DEFAULT_ROWS = 100_000
MOST_DEFAULT_ROWS = 500_000
DEVIATIONS = 5.0  # standard deviations above its mean for which the number of old rows must be available
WORTH_SORTING = 0.95  # of the bytes in the first order: the second must take less
MOST_HYPERGEOMETRIC = 10**9  # rows for which NumPy has the distribution
EVIDENCE_STREAM = 23  # separates these random numbers from others of the same seed


@dataclass(frozen=True, eq=False)
class EvidenceRows:
    """Rows of a table: for every column of its schema, in the same order, the code of each row.

    ``schema`` is that of the sample: its columns are those of the table, including text columns, and all have codes.
    The order of the rows has no meaning.
    """

    schema: Schema
    codes: tuple[NDArray[Any], ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.schema.rows

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """A cache for what others compute from the rows; a key says what it is."""
        return {}

    @classmethod
    def drawn(cls, source: Source, schema: Schema, count: int, seed: int) -> EvidenceRows:
        """``count`` random rows of ``source``, the table of ``schema``; all rows if it has no more."""
        if count >= schema.rows:
            return cls._encoded(source, schema)
        sample_seed = int(np.random.SeedSequence([seed, EVIDENCE_STREAM]).generate_state(1)[0])
        with source.sample_table(count, sample_seed, schema.names, schema.rows) as sample:
            return cls._encoded(sample, replace(schema, rows=count))

    @classmethod
    def _encoded(cls, source: Source, schema: Schema) -> EvidenceRows:
        """All rows of ``source``, which are a sample of the table of ``schema``."""
        from countless.data.columns.discovery import Scans
        from countless.data.encoding.table import Table

        wide = {column.name: column.type for column in schema.columns if not has_codes(column)}
        domains = Scans(source).domains(wide, lambda name, count: True) if wide else {}
        columns = tuple(domains.get(column.name, column) for column in schema.columns)
        sample_schema = replace(schema, columns=columns, calendar=())
        table = Table.encode_rows(source, sample_schema)
        return cls.of(sample_schema, [np.concatenate(blocks) for blocks in zip(*table.blocks(), strict=True)])

    @classmethod
    def of(cls, schema: Schema, codes: list[NDArray[Any]]) -> EvidenceRows:
        """Rows with these codes of each column, sorted so that they compress well.

        They are sorted by the columns with few values first, or by those with many values if that saves much.
        """
        narrow = [
            column_codes.astype(np.min_scalar_type(column.size - 1))
            for column_codes, column in zip(codes, schema.coded, strict=True)
        ]
        by_size = sorted(range(len(narrow)), key=lambda index: -schema.coded[index].size)
        orders = [np.lexsort([narrow[index] for index in keys]) for keys in (by_size, by_size[::-1])]
        packed = [sum(len(zlib.compress(_planes(column[order]).tobytes(), 1)) for column in narrow) for order in orders]
        order = orders[packed[1] < WORTH_SORTING * packed[0]]
        return cls(schema, tuple(column[order] for column in narrow))

    def source(self) -> Source:
        """The rows as a table in a new DuckDB database, with the table's names, types and values, in this order."""
        from countless.data.sources.source import Source, connect, new_name

        name, codes_name, connection = new_name(), new_name(), connect()
        connection.register(codes_name, {f"c{index}": codes for index, codes in enumerate(self.codes)})
        # NULL's code is one past the last value, and there a DuckDB list has NULL.
        values = ", ".join(
            f"CAST({sql_texts(column.values)} AS {column.type}[])[CAST(c{index} AS BIGINT) + 1] "
            f"AS {quote_identifier(column.name)}"
            for index, column in enumerate(self.schema.coded)
        )
        source = Source(name, connection, None)
        source.run(f"CREATE TEMP TABLE {source.table} AS SELECT {values} FROM {quote_identifier(codes_name)}")
        connection.unregister(codes_name)
        return source

    def updated(self, growth: Growth, new: Source, size: int, seed: int) -> EvidenceRows:
        """A uniform sample of ``size`` rows, or fewer if necessary, of the table with its ``new`` rows.

        It has random rows of this sample and of the new rows, in the proportion of a sample of the whole table. Values
        that none of its rows has are dropped.
        """
        from countless.data.sources.connection import connect

        rng = np.random.default_rng([seed, EVIDENCE_STREAM])
        added = growth.schema.rows - growth.old.rows
        old_count, new_count = updated_shares(self.rows, growth.old.rows, added, size, rng)
        chosen = rng.choice(self.rows, old_count, replace=False)
        drawn = EvidenceRows.drawn(new, replace(growth.schema, rows=added), new_count, seed) if new_count else None
        connection = connect()
        columns, codes = [], []
        for index, column in enumerate(growth.schema.columns):
            old_codes = self.codes[index][chosen]
            if has_codes(column):
                moved = growth.codes(index)[old_codes]
                codes.append(moved if drawn is None else np.concatenate([moved, drawn.codes[index]]))
            else:
                parts = [(self.schema.coded[index], old_codes)]
                parts += [] if drawn is None else [(drawn.schema.coded[index], drawn.codes[index])]
                column, merged_codes = _merged(connection, parts)
                codes.append(merged_codes)
            columns.append(column)
        return self.of(replace(growth.schema, rows=old_count + new_count, columns=tuple(columns), calendar=()), codes)

    def arrays(self, table: Schema) -> dict[str, NDArray[Any]]:
        """The rows as arrays by name, for the model file; ``table`` is the schema of the whole table."""
        arrays: dict[str, NDArray[Any]] = {}
        for index, (codes, column) in enumerate(zip(self.codes, self.schema.coded, strict=True)):
            arrays[f"codes-{index}"] = _planes(codes)
            if not has_codes(table.columns[index]):
                arrays[f"values-{index}"], arrays[f"shared-{index}"] = front_coded(column.values)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], table: Schema) -> EvidenceRows:
        """The rows that :meth:`arrays` wrote; anything else is a :class:`ModelFileError`."""
        columns, all_codes = [], []
        for index, column in enumerate(table.columns):
            try:
                codes = _codes(arrays[f"codes-{index}"])
                if not has_codes(column):
                    values = front_decoded(arrays[f"values-{index}"], arrays[f"shared-{index}"])
                    column = Column(column.name, column.type, values, bool(codes.max(initial=0) == len(values)))
                    if not are_printed(column.type, values):
                        raise ValueError("these are not values of that type")
            except (LookupError, ValueError):
                raise _damaged(column.name) from None
            assert not column.is_text
            if codes.max(initial=0) >= column.size:
                raise _damaged(column.name)
            columns.append(column)
            all_codes.append(codes)
        rows = len(all_codes[0]) if all_codes else 0
        if any(len(codes) != rows for codes in all_codes) or not 0 < rows <= table.rows:
            raise ModelFileError("the model file is damaged: its evidence rows have several lengths; fit it again")
        return cls(replace(table, rows=rows, columns=tuple(columns), calendar=()), tuple(all_codes))


@dataclass(frozen=True, eq=False)
class Hits:
    """The evidence ``rows``, with ``marks`` on those that match a condition; ``count`` is the number of these."""

    rows: EvidenceRows
    marks: BoolArray
    count: int

    @classmethod
    def of(cls, rows: EvidenceRows, marks: BoolArray) -> Hits:
        """The hits with these ``marks``."""
        return cls(rows, marks, int(np.count_nonzero(marks)))

    def codes(self, index: int) -> IntArray:
        """The code of each hit in the column at ``index``."""
        return self.rows.codes[index][self.marks].astype(np.int64)


def has_codes(column: Any) -> bool:
    """Whether a column of the table has a code for each value: it is not text, and has no grid."""
    return not column.is_text and column.grid is None


def evidence_rows(setting: str, rows: int) -> int:
    """The number of rows to store of a table with ``rows`` rows.

    The ``setting`` is a number, a percentage, ``all``, ``none`` or ``auto``.

    >>> [evidence_rows("auto", rows) for rows in (500, 48_842, 300_000, 60_000_000)]
    [500, 48842, 100000, 500000]
    >>> [evidence_rows(setting, 200_000) for setting in ("50000", "5%", "all", "none")]
    [50000, 10000, 200000, 0]
    """
    if setting == "auto":
        return min(rows, max(DEFAULT_ROWS, min(MOST_DEFAULT_ROWS, rows // DEFAULT_ONE_IN)))
    if setting in ("all", "none"):
        return rows if setting == "all" else 0
    if setting.endswith("%"):
        return max(1, round(rows * float(setting[:-1]) / 100))
    return min(rows, int(setting))


def updated_shares(stored: int, rows: int, added: int, size: int, rng: np.random.Generator) -> tuple[int, int]:
    """The numbers of old and new rows in a uniform sample of a table of ``rows`` rows after ``added`` more.

    The old rows are taken from ``stored`` sampled rows. Unless these are the whole table, a sample of ``size`` rows may
    need more old rows than are stored: then a smaller one is drawn, for which this hardly ever happens.

    >>> rng = np.random.default_rng(0)
    >>> updated_shares(500, 500, 20, 520, rng), updated_shares(300, 500, 0, 300, rng)
    ((500, 20), (300, 0))
    >>> old, new = updated_shares(10_000, 100_000, 100_000, 20_000, rng)
    >>> old <= 10_000, 19_000 < old + new < 20_000
    (True, True)
    """
    size = min(size, rows + added)
    if stored < rows and size > stored:
        share = rows / (rows + added)
        # The greatest size for which the mean number of old rows, plus DEVIATIONS standard deviations, is stored.
        margin = DEVIATIONS * np.sqrt(1 - share)
        root = (np.sqrt(margin**2 + 4 * stored) - margin) / 2
        size = max(stored, min(size, int(root**2 / share)))
    while True:
        new = _draw_new_count(size, rows, added, rng)
        if size - new <= stored:
            return size - new, new


def _draw_new_count(size: int, rows: int, added: int, rng: np.random.Generator) -> int:
    """The number of added rows in a uniform sample of ``size`` rows, at random."""
    if rows + added < MOST_HYPERGEOMETRIC:
        return int(rng.hypergeometric(added, rows, size))
    return int(rng.binomial(size, added / (rows + added)))  # for so large a table nearly the same


def _merged(
    connection: duckdb.DuckDBPyConnection, parts: list[tuple[Column, NDArray[Any]]]
) -> tuple[Column, NDArray[Any]]:
    """One column for several samples of it, each with a domain of its own, and the codes of all their rows in order.

    Its values are those that occur among the codes.
    """
    first = parts[0][0]
    used = [np.unique(codes[codes != column.null]) for column, codes in parts]
    texts = [column.values[code] for (column, _), part_codes in zip(parts, used, strict=True) for code in part_codes]
    value = 'text COLLATE "binary"' if first.type == TEXT else f"CAST(text AS {first.type})"
    ranked = (
        f"SELECT text, dense_rank() OVER (ORDER BY {value}) - 1 AS code "
        f"FROM (SELECT unnest({sql_texts(texts)}) AS text, unnest(range({len(texts)})) AS index) ORDER BY index"
    )
    texts_and_codes = connection.execute(ranked).fetchall()
    ranks: IntArray = np.array([code for _, code in texts_and_codes], dtype=np.int64)
    values = {code: text for text, code in texts_and_codes}
    null, merged_codes, start = len(values), [], 0
    for (column, codes), part_codes in zip(parts, used, strict=True):
        new_codes = np.full(column.null + 1, null)
        new_codes[part_codes] = ranks[start : start + len(part_codes)]
        merged_codes.append(new_codes[codes])
        start += len(part_codes)
    all_codes = np.concatenate(merged_codes)
    has_null = bool((all_codes == null).any())
    return Column(first.name, first.type, tuple(values[code] for code in range(null)), has_null), all_codes


def _planes(codes: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of codes: all lowest bytes first, then all next ones, because that compresses better."""
    planes: NDArray[np.uint8] = codes.view(np.uint8).reshape(len(codes), -1).T
    return planes


def _codes(planes: NDArray[Any]) -> NDArray[Any]:
    """The codes that :func:`_planes` wrote."""
    if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) not in (1, 2, 4):
        raise ValueError("these are no codes")
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}")[:, 0]


def _damaged(name: str) -> ModelFileError:
    return ModelFileError(f'the model file is damaged: its evidence rows do not fit "{name}"; fit it again')
