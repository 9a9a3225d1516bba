"""The rows of a relation, a batch at a time, as NumPy arrays: Arrow's C stream, for which nobody needs pyarrow.

DuckDB fills the next batch while one is looked at, and no more of the table is in memory than a few of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray
from countless.errors import SourceError

NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "f": "f4", "g": "f8"}
STRINGS = {"u": "i4", "U": "i8"}  # the type of their offsets
DAYS = "tdD"
CAPSULE = b"arrow_array_stream"


@dataclass(frozen=True, eq=False)
class Vector:
    """A column of a batch: numbers, of times and decimals the integers that they are stored as; or strings.

    Of strings ``values`` has the bytes of all, in UTF-8, and ``offsets`` where each begins, and the last ends.
    ``valid`` tells which are not NULL, if some are. They last no longer than the batch.
    """

    values: NDArray[Any]
    valid: BoolArray | None = None
    offsets: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[list[Vector]]:
    """The columns of each batch of rows, in the order of the rows."""
    capsule = relation.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer(capsule, CAPSULE))
    schema = _Schema()
    _check(stream, stream.get_schema(stream, schema))
    try:
        formats = [schema.children[place].contents.format.decode() for place in range(schema.n_children)]
    finally:
        schema.release(schema)
    while True:
        array = _Array()
        _check(stream, stream.get_next(stream, array))
        if not array.release:
            return
        try:
            yield [_vector(array.children[place].contents, kind) for place, kind in enumerate(formats)]
        finally:
            array.release(array)


def _vector(array: Any, kind: str) -> Vector:
    length, offset = array.length, array.offset
    valid = None
    if array.null_count and array.buffers[0]:
        bits = _read(array.buffers[0], "u1", (offset + length + 7) // 8)
        valid = np.unpackbits(bits, count=offset + length, bitorder="little")[offset:].astype(bool)
    if kind in STRINGS:
        offsets = _read(array.buffers[1], STRINGS[kind], offset + length + 1)[offset:]
        values = _read(array.buffers[2], "u1", int(offsets[-1]) if len(offsets) else 0)
        return Vector(values, valid, offsets)
    return Vector(_numbers(array.buffers[1], kind, offset + length)[offset:], valid)


def _numbers(address: int | None, kind: str, count: int) -> NDArray[Any]:
    if kind.startswith("d:"):  # of more than 64 bits only the lower ones are told
        bits = int([*kind[2:].split(","), "128"][2])
        return _read(address, "i4", count) if bits == 32 else _read(address, "i8", count * bits // 64)[:: bits // 64]
    if kind == DAYS:
        return _read(address, "i4", count)
    if kind.startswith(("ts", "tt")):
        return _read(address, "i8", count)
    if kind not in NUMBERS:
        raise SourceError(
            f"DuckDB gave a column in Arrow's format {kind!r}, which is not known: reset its arrow settings"
        )
    return _read(address, NUMBERS[kind], count)


def _read(address: int | None, kind: str, count: int) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if not address or not count:
        return np.empty(0, dtype=dtype)
    held = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(held), dtype=dtype)


def _check(stream: Any, failed: int) -> None:
    if failed:
        told = stream.get_last_error(stream) or b"it gave no reason"
        line = told.decode(errors="replace").strip().splitlines()[0]
        if "INTERRUPT" in line.upper():
            raise KeyboardInterrupt
        raise SourceError(f"DuckDB could not read the table: {line}")


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private", ctypes.c_void_p),
]


def _pointer(capsule: object, name: bytes) -> int:
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(read(capsule, name))
