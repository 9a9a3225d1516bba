"""The zip archive of a model file: members are read within bounds, and damage is a :class:`ModelFileError`."""

from __future__ import annotations

import errno
import json
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from countless.errors import ModelFileError

LARGEST_JSON = 1 << 26
LARGEST_SCHEMA = 1 << 30  # it holds the values of columns
LARGEST_ARRAYS = 1 << 34
MOST_PARTS = 1 << 20  # lists, objects and keys of a section: each takes many times its bytes of memory, and time
SMALL = 1 << 20  # bytes that any member may unpack to; a larger one
MOST_RATIO = 100  # to at most this many times its packed size. A zip bomb has about 1,000.
LEVEL = 9  # of compression
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)  # of JSON

# What reading a file that is not as it should be can raise, in zipfile, json, safetensors and here.
DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    SafetensorError,
    EOFError,
    RuntimeError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


@contextmanager
def opened(file: IO[bytes], source: Path) -> Iterator[zipfile.ZipFile]:
    """The archive in ``file``. Damage that is found inside the block is a :class:`ModelFileError` about ``source``."""
    try:
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            if sum(info.compress_size for info in archive.infolist()) > size:
                raise ValueError("its members are larger than the file")
            yield archive
    except DAMAGE as error:
        raise _damaged(source, error) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # the archive sends us before its own beginning
            raise _damaged(source, error) from None
        raise


def put_json(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    """Write plain data as a member."""
    _put(archive, name, json.dumps(data, ensure_ascii=False).encode())


def put_arrays(archive: zipfile.ZipFile, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a member. Nearly half of the weights of an autoregressive network are 0: they pack well."""
    _put(archive, name, save_arrays({key: np.ascontiguousarray(array) for key, array in arrays.items()}))


def packed_bytes(arrays: Mapping[str, NDArray[Any]]) -> int:
    """About how many bytes the arrays take as a member."""
    return len(zlib.compress(save_arrays({key: np.ascontiguousarray(array) for key, array in arrays.items()}), LEVEL))


def get_json(archive: zipfile.ZipFile, name: str, most: int | None = None) -> dict[str, Any]:
    """The object in a member of at most ``most`` bytes, by default LARGEST_JSON."""
    text = _get(archive, name, LARGEST_JSON if most is None else most)
    if _parts(text) > MOST_PARTS and _parts(STRING.sub(b"", text)) > MOST_PARTS:
        raise ValueError(f"{name} has too many parts")
    try:
        data = json.loads(text.decode())
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"{name} is not an object")
    if rb"\ud" in text or rb"\uD" in text:  # half a character, perhaps: it can be neither shown nor stored
        json.dumps(data, ensure_ascii=False).encode()
    return data


def get_arrays(archive: zipfile.ZipFile, name: str) -> dict[str, NDArray[Any]]:
    """The arrays in a member."""
    return load_arrays(_get(archive, name, LARGEST_ARRAYS))


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write a member, packed, unless it is so uniform that reading would take it for a zip bomb."""
    bomb = len(data) > SMALL and len(data) > MOST_RATIO * len(zlib.compress(data)) // 2
    # ZipInfo without a date: the same contents make the same bytes.
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_STORED if bomb else zipfile.ZIP_DEFLATED, LEVEL)


def _get(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type not in PACKINGS:
        raise ValueError(f"{name} is packed in another way than model files are")
    if info.file_size > min(most, max(SMALL, MOST_RATIO * info.compress_size)):
        raise ValueError(f"{name} says it has {info.file_size:,} bytes")
    with archive.open(info) as member:
        data = member.read(info.file_size + 1)  # the size in the header may lie
    if len(data) != info.file_size:
        raise ValueError(f"{name} is cut short")
    return data


def _parts(text: bytes) -> int:
    """How many lists, objects and keys there are at most: what stands in strings counts as well."""
    return text.count(b"[") + text.count(b"{") + text.count(b":")


def _damaged(source: Path, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{source} is not a Countless model file, or it is damaged ({error}): copy it again or fit it again"
    )
