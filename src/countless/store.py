"""The model file: a zip archive of named, versioned sections.

========================== =======================================================================
``countless.json``         format version, library version, and the version of every section
``schema.json``            rows, columns with every distinct value or a grid, columns left out
``models/<name>.json``     a model's spec; ``models/<name>.safetensors`` its arrays
``calibration.json``       queries with their true counts, and what follows from them
``report.json``            how training went
========================== =======================================================================

JSON and safetensors only: nothing in the file is ever executed. Members are stored with checksums, which reading
verifies. What a member unpacks to is bounded before it is read. This module knows no model, only sections.
"""

from __future__ import annotations

import errno
import io
import json
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from countless._version import __version__
from countless.data.files import open_regular
from countless.data.output import remove_strays, write_whole
from countless.errors import ModelFileError
from countless.sections import MANIFEST as MANIFEST_FORM
from countless.sections import REPORT, check_model, check_section

FORMAT = 1
SECTIONS = {"schema": 1, "models": 1, "calibration": 1, "report": 1}
LARGEST_JSON = 1 << 30
LARGEST_ARRAYS = 1 << 34
LARGEST_OTHER = 1 << 26  # of sections without the values of columns
MOST_PARTS = 1 << 20  # lists, objects and keys of a section: each takes many times its bytes of memory, and time
SMALL = 1 << 20  # bytes that any member may unpack to; a larger one
MOST_RATIO = 100  # to no more than so many times its packed size. A zip bomb has about 1,000.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MANIFEST = "countless.json"
MEMORY = Path("the model in memory")  # what errors call contents that are in no file
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


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model's spec and arrays, as plain data."""

    spec: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything in a model file, as plain data."""

    schema: dict[str, Any]
    models: dict[str, StoredModel]
    calibration: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    library: str = __version__


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write the file atomically: after a crash or on a full disk, what was there before is still there.

    What killed processes left of an earlier attempt is removed first.
    """
    remove_strays(path)

    def written(partial: str) -> None:
        with open(partial, "wb") as file:
            _write_archive(file, contents)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, written, ModelFileError)


def read(path: str | os.PathLike[str]) -> Contents:
    """The contents of the file; a missing, damaged, hostile or newer one is a :class:`ModelFileError`."""
    source = Path(path)
    try:
        with open_regular(source, ModelFileError) as file:
            return _read(file, source)
    except FileNotFoundError:
        raise ModelFileError(f"no such model file: {source}; make one with countless fit TABLE -o {source}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {source}: {error.strerror or error}") from None


def to_bytes(contents: Contents) -> bytes:
    """What the model file would hold."""
    file = io.BytesIO()
    _write_archive(file, contents)
    return file.getvalue()


def from_bytes(data: bytes) -> Contents:
    """The contents of a model file that is in memory."""
    return _read(io.BytesIO(data), MEMORY)


def is_model(path: Path) -> bool:
    """Whether the file at ``path`` looks like a model file, whole or not, of whatever version."""
    try:
        with open_regular(path, ModelFileError) as file, zipfile.ZipFile(file) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, ModelFileError, *DAMAGE):
        return False


def _write_archive(file: Any, contents: Contents) -> None:
    manifest = {"format": FORMAT, "library": contents.library, "sections": SECTIONS, "models": sorted(contents.models)}
    with zipfile.ZipFile(file, "w") as archive:
        _put_json(archive, MANIFEST, manifest)
        _put_json(archive, "schema.json", contents.schema)
        for name, model in sorted(contents.models.items()):
            _put_json(archive, f"models/{name}.json", model.spec)
            arrays = {key: np.ascontiguousarray(array) for key, array in model.arrays.items()}
            # Nearly half of the weights of an autoregressive network are masked, and 0: they pack well.
            _put(archive, f"models/{name}.safetensors", save_arrays(arrays))
        _put_json(archive, "calibration.json", contents.calibration)
        _put_json(archive, "report.json", contents.report)


def _put_json(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    _put(archive, name, json.dumps(data, ensure_ascii=False).encode())


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write a member, packed, unless it is so uniform that reading would take it for a zip bomb."""
    bomb = len(data) > SMALL and len(data) > MOST_RATIO * len(zlib.compress(data)) // 2
    # ZipInfo without a date: the same contents make the same bytes.
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_STORED if bomb else zipfile.ZIP_DEFLATED)


def _read(file: IO[bytes], source: Path) -> Contents:
    try:
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            return _read_archive(archive, size, source)
    except DAMAGE as error:
        raise _damaged(source, error) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # the archive sends us before its own beginning
            raise _damaged(source, error) from None
        raise


def _read_archive(archive: zipfile.ZipFile, size: int, source: Path) -> Contents:
    """The contents of an archive of ``size`` bytes."""
    if MANIFEST not in archive.namelist():
        raise ModelFileError(f"{source} is a zip archive but not a Countless model: it has no {MANIFEST}")
    if sum(info.compress_size for info in archive.infolist()) > size:
        raise ValueError("its members are larger than the file")
    manifest = _get_json(archive, MANIFEST, LARGEST_OTHER)
    check_section(MANIFEST, MANIFEST_FORM, manifest)
    _refuse_newer(manifest, source)
    models = {}
    for name in dict.fromkeys(manifest["models"]):
        spec = _get_json(archive, f"models/{name}.json", LARGEST_OTHER)
        check_model(name, spec)
        models[name] = StoredModel(spec, load_arrays(_get(archive, f"models/{name}.safetensors", LARGEST_ARRAYS)))
    report = _get_json(archive, "report.json", LARGEST_OTHER)
    check_section("report.json", REPORT, report)
    return Contents(
        schema=_get_json(archive, "schema.json", LARGEST_JSON),
        models=models,
        calibration=_get_json(archive, "calibration.json", LARGEST_OTHER),
        report=report,
        library=manifest["library"],
    )


def _refuse_newer(manifest: dict[str, Any], source: Path) -> None:
    newer = manifest["format"] > FORMAT or any(
        version > SECTIONS[name] for name, version in manifest["sections"].items() if name in SECTIONS
    )
    if newer:
        raise ModelFileError(
            f"{source} was written by Countless {manifest['library']}, and this is {__version__}: "
            "pip install --upgrade countless"
        )


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


def _get_json(archive: zipfile.ZipFile, name: str, most: int) -> dict[str, Any]:
    text = _get(archive, name, most)
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


def _parts(text: bytes) -> int:
    """How many lists, objects and keys there are at most: what stands in strings counts as well."""
    return text.count(b"[") + text.count(b"{") + text.count(b":")


def _damaged(source: Path, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{source} is not a Countless model file, or it is damaged ({error}): copy it again or fit it anew"
    )
