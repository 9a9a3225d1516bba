"""Evidence: a uniform random sample of the table's rows, which is kept beside the model and counted.

Every column of the sample has codes. A column that has a code for each value in the model has the same codes here. A
grid's column, or one of text, has codes of the values that the sample itself holds: so nothing is rounded or cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.data.columns.discovery import Scans
from countless.data.columns.printed_values import are_printed
from countless.data.columns.schema import Column, Schema
from countless.data.encoding.table import Table
from countless.data.sources.source import Source
from countless.errors import ModelFileError

LEAST, MOST, ONE_IN = 10_000, 100_000, 10  # rows by default: one in ten, between these two


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
        some = source if count >= schema.rows else source.sampled(count, seed)
        wide = {column.name: column.type for column in schema.columns if not has_codes(column)}
        found = Scans(some).domains(wide, lambda name, count: True) if wide else {}
        columns = tuple(found.get(column.name, column) for column in schema.columns)
        own = replace(schema, rows=min(count, schema.rows), columns=columns)
        table = Table.encode_rows(some, own)
        return cls.of(own, [np.concatenate(parts) for parts in zip(*table.blocks(), strict=True)])

    @classmethod
    def of(cls, schema: Schema, codes: list[NDArray[Any]]) -> EvidenceRows:
        """Rows in an order in which they pack well: by the columns of few values first."""
        by_size = sorted(range(len(codes)), key=lambda index: -schema.coded[index].size)
        order = np.lexsort([codes[index] for index in by_size])
        packed = (
            own[order].astype(np.min_scalar_type(column.size - 1))
            for own, column in zip(codes, schema.coded, strict=True)
        )
        return cls(schema, tuple(packed))

    def arrays(self, table: Schema) -> dict[str, NDArray[Any]]:
        """The rows as arrays by name, for the model file of a ``table``."""
        found: dict[str, NDArray[Any]] = {}
        for index, (own, column) in enumerate(zip(self.codes, self.schema.coded, strict=True)):
            # All low bytes together, then the next ones: they pack better.
            found[f"codes-{index}"] = own.view(np.uint8).reshape(len(own), -1).T
            if not has_codes(table.columns[index]):
                texts = [text.encode("utf-8", "surrogatepass") for text in column.values]
                found[f"values-{index}"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
                found[f"lengths-{index}"] = np.array([len(text) for text in texts], dtype=np.uint32)
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], table: Schema) -> EvidenceRows:
        """The rows that :meth:`arrays` wrote; anything else is a :class:`ModelFileError`."""
        columns, codes = [], []
        for index, column in enumerate(table.columns):
            try:
                own = _codes(arrays[f"codes-{index}"])
                if not has_codes(column):
                    values = _values(arrays[f"values-{index}"], arrays[f"lengths-{index}"])
                    column = Column(column.name, column.type, values, bool(own.max(initial=0) == len(values)))
                    if not are_printed(column.type, values):
                        raise ValueError("these are no values of that type")
            except (LookupError, ValueError, UnicodeDecodeError):
                raise _damaged(column.name) from None
            assert not column.is_text
            if own.max(initial=0) >= column.size:
                raise _damaged(column.name)
            columns.append(column)
            codes.append(own)
        if len({len(own) for own in codes}) != 1 or not 0 < len(codes[0]) <= table.rows:
            raise ModelFileError("the model file is damaged: its evidence rows have several lengths; fit it again")
        return cls(replace(table, rows=len(codes[0]), columns=tuple(columns)), tuple(codes))


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
    """How many rows to keep of a table of so many: a number, a percentage, ``all``, ``none`` or ``auto``.

    >>> [evidence_rows("auto", rows) for rows in (500, 48_842, 300_000, 60_000_000)]
    [500, 10000, 30000, 100000]
    >>> [evidence_rows(wanted, 200_000) for wanted in ("50000", "5%", "all", "none")]
    [50000, 10000, 200000, 0]
    """
    if wanted == "auto":
        return min(rows, max(LEAST, min(MOST, rows // ONE_IN)))
    if wanted in ("all", "none"):
        return rows if wanted == "all" else 0
    if wanted.endswith("%"):
        return max(1, round(rows * float(wanted[:-1]) / 100))
    return min(rows, int(wanted))


def _codes(planes: NDArray[Any]) -> NDArray[Any]:
    """The codes whose bytes are in ``planes``."""
    if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) not in (1, 2, 4):
        raise ValueError("these are no codes")
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}")[:, 0]


def _values(characters: NDArray[Any], lengths: NDArray[Any]) -> tuple[str, ...]:
    if characters.dtype != np.uint8 or lengths.dtype != np.uint32 or int(lengths.sum()) != len(characters):
        raise ValueError("these are no values")
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    data = characters.tobytes()
    return tuple(
        data[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends[:-1]], ends, strict=True)
    )


def _damaged(name: str) -> ModelFileError:
    return ModelFileError(f'the model file is damaged: its evidence rows do not fit "{name}"; fit it again')
