"""Batches of a DuckDB relation as NumPy arrays that share Arrow's memory.

DuckDB fills the next batch while one is looked at, and no more of the table is in memory than a few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray
from countless.errors import MissingExtraError, SourceError

STRINGS = {"string": "i4", "large_string": "i8"}  # the type of their offsets
INTEGERS = {"date32": "i4", "timestamp": "i8", "time64": "i8", "decimal32": "i4", "decimal64": "i8"}  # by what they are
UNREADABLE = "DuckDB could not read the table: "  # before DuckDB's own words


BATCH_ROWS = (1 << 10, 1 << 16)  # of a batch, at least and at most; between them
BATCH_BYTES = 16 * 10**6  # bytes, about


@dataclass(frozen=True, eq=False)
class Vector:
    """A column of a batch: numbers, of times and decimals the integers that they are stored as; or strings.

    Of strings ``values`` has the bytes of all, in UTF-8, and ``offsets`` where each begins, and the last ends.
    ``valid`` marks those that are not NULL, if some are. They last no longer than the batch.
    """

    values: NDArray[Any]
    valid: BoolArray | None = None
    offsets: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def batches(relation: Any, rows: int) -> Iterator[list[Vector]]:
    """The columns of each batch of this many rows of a DuckDB relation, in the order of the rows."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("reading a table needs Arrow: pip install 'countless[train]'") from None
    try:
        with relation.to_arrow_reader(rows) as reader:
            for batch in reader:
                yield [_vector(column) for column in batch.columns]
    except (pyarrow.ArrowException, OSError) as error:
        line = (str(error).strip().splitlines() or ["it gave no reason"])[0]
        if "INTERRUPT" in line.upper():
            raise KeyboardInterrupt from None
        raise SourceError(UNREADABLE + line) from None


def rows_at_once(row_bytes: float) -> int:
    """How many rows a batch should have, of which each takes this many bytes.

    >>> rows_at_once(100), rows_at_once(1_000), rows_at_once(1_000_000)
    (65536, 16000, 1024)
    """
    least, most = BATCH_ROWS
    return max(least, min(most, int(BATCH_BYTES / max(row_bytes, 1.0))))


def _vector(column: Any) -> Vector:
    first, end = column.offset, column.offset + len(column)
    present, *buffers = column.buffers()
    valid = None
    if column.null_count and present is not None:
        valid = np.unpackbits(_read(present, "u1"), count=end, bitorder="little")[first:].astype(bool)
    kind = str(column.type)
    if kind in STRINGS:
        offsets = _read(buffers[0], STRINGS[kind])[first : end + 1]
        return Vector(_read(buffers[1], "u1"), valid, offsets if len(offsets) else np.zeros(1, dtype=STRINGS[kind]))
    return Vector(_numbers(buffers[0], column.type)[first:end], valid)


def _numbers(buffer: Any, kind: Any) -> NDArray[Any]:
    name = str(kind).split("[")[0].split("(")[0]
    if name == "decimal128":  # the lower half is enough
        return _read(buffer, "i8")[::2]
    if name in INTEGERS:
        return _read(buffer, INTEGERS[name])
    try:
        return _read(buffer, kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        raise SourceError(f"a column has the Arrow type {kind}, which Countless does not know: cast it") from None


def _read(buffer: Any, kind: Any) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if buffer is None or not buffer.size:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=buffer.size // dtype.itemsize)
