"""Batches of a DuckDB relation as NumPy arrays that share Arrow's memory.

DuckDB fills the next batch while one is used, so only a few batches are in memory.
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
INTEGERS = {"date32": "i4", "timestamp": "i8", "time64": "i8", "decimal32": "i4", "decimal64": "i8"}  # by Arrow type
UNREADABLE = "DuckDB could not read the table: "  # the start of such errors
BATCH_ROWS = (1 << 10, 1 << 16)  # least and most rows of a batch; between them it has
BATCH_BYTES = 16 * 10**6  # about this many bytes


@dataclass(frozen=True, eq=False)
class Vector:
    """A column of a batch: numbers or strings. Times and decimals are the integers that Arrow stores.

    For strings, ``values`` has the UTF-8 bytes of all, and ``offsets`` the start of each and the end of the last.
    ``valid`` is false where a value is NULL; it is None if there is no NULL. The arrays live only as long as the batch.
    """

    values: NDArray[Any]
    valid: BoolArray | None = None
    offsets: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def batches(relation: Any, rows: int) -> Iterator[list[Vector]]:
    """The columns of each batch of ``rows`` rows of a DuckDB relation, in the order of the rows."""
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
    """The number of rows of a batch, if each takes ``row_bytes``.

    >>> rows_at_once(100), rows_at_once(1_000), rows_at_once(1_000_000)
    (65536, 16000, 1024)
    """
    least, most = BATCH_ROWS
    return max(least, min(most, int(BATCH_BYTES / max(row_bytes, 1.0))))


def _vector(column: Any) -> Vector:
    """An Arrow array as a vector."""
    first, end = column.offset, column.offset + len(column)
    validity, *buffers = column.buffers()
    valid = None
    if column.null_count and validity is not None:
        valid = np.unpackbits(_read(validity, "u1"), count=end, bitorder="little")[first:].astype(bool)
    kind = str(column.type)
    if kind in STRINGS:
        offsets = _read(buffers[0], STRINGS[kind])[first : end + 1]
        return Vector(_read(buffers[1], "u1"), valid, offsets if len(offsets) else np.zeros(1, dtype=STRINGS[kind]))
    return Vector(_numbers(buffers[0], column.type)[first:end], valid)


def _numbers(buffer: Any, kind: Any) -> NDArray[Any]:
    """The numbers in a buffer of this Arrow type."""
    name = str(kind).split("[")[0].split("(")[0]
    if name == "decimal128":  # its values fit in the lower half (encoder.short_type)
        return _read(buffer, "i8")[::2]
    if name in INTEGERS:
        return _read(buffer, INTEGERS[name])
    try:
        return _read(buffer, kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        raise SourceError(f"a column has the Arrow type {kind}, which Countless does not know: cast it") from None


def _read(buffer: Any, kind: Any) -> NDArray[Any]:
    """A buffer as an array of this NumPy type, without a copy."""
    dtype = np.dtype(kind)
    if buffer is None or not buffer.size:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=buffer.size // dtype.itemsize)
