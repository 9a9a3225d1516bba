"""The model file: a zip archive of named, versioned sections.

========================== =======================================================================
``countless.json``         format version, library version, and the version of every section
``schema.json``            rows, columns with every distinct value or a grid, columns left out
``models/<name>.json``     a model's spec; ``models/<name>.safetensors`` its arrays
``calibration.json``       queries with their true counts, and what follows from them
``report.json``            how training went
========================== =======================================================================

JSON and safetensors only: nothing in the file is ever executed. Members are stored with checksums, which reading
verifies. This module knows no model, only sections.
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from countless._version import __version__
from countless.data.output import write_whole
from countless.errors import ModelFileError

FORMAT = 1
SECTIONS = {"schema": 1, "models": 1, "calibration": 1, "report": 1}
LARGEST_JSON = 1 << 30
LARGEST_ARRAYS = 1 << 34
MANIFEST = "countless.json"

# What reading a file that is not as it should be can raise, in zipfile, json, safetensors and here.
DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
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
    """Write the file atomically: after a crash or on a full disk, what was there before is still there."""

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
        with zipfile.ZipFile(source) as archive:
            return _read_archive(archive, source)
    except FileNotFoundError:
        raise ModelFileError(f"no such model file: {source}; make one with countless fit TABLE -o {source}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {source}: {error.strerror or error}") from None
    except DAMAGE as error:
        raise _damaged(source, error) from None


def is_model(path: Path) -> bool:
    """Whether the file at ``path`` looks like a model file, whole or not, of whatever version."""
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _write_archive(file: Any, contents: Contents) -> None:
    manifest = {"format": FORMAT, "library": contents.library, "sections": SECTIONS, "models": sorted(contents.models)}
    with zipfile.ZipFile(file, "w") as archive:
        _put_json(archive, MANIFEST, manifest)
        _put_json(archive, "schema.json", contents.schema)
        for name, model in contents.models.items():
            _put_json(archive, f"models/{name}.json", model.spec)
            arrays = {key: np.ascontiguousarray(array) for key, array in model.arrays.items()}
            archive.writestr(zipfile.ZipInfo(f"models/{name}.safetensors"), save_arrays(arrays))
        _put_json(archive, "calibration.json", contents.calibration)
        _put_json(archive, "report.json", contents.report)


def _put_json(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    # ZipInfo without a date: the same contents make the same bytes.
    archive.writestr(zipfile.ZipInfo(name), json.dumps(data, ensure_ascii=False), zipfile.ZIP_DEFLATED)


def _read_archive(archive: zipfile.ZipFile, source: Path) -> Contents:
    if MANIFEST not in archive.namelist():
        raise ModelFileError(f"{source} is a zip archive but not a Countless model: it has no {MANIFEST}")
    manifest = _get_json(archive, MANIFEST)
    _refuse_newer(manifest, source)
    models = {}
    for name in manifest["models"]:
        arrays = load_arrays(_get(archive, f"models/{name}.safetensors", LARGEST_ARRAYS))
        models[str(name)] = StoredModel(_get_json(archive, f"models/{name}.json"), arrays)
    return Contents(
        schema=_get_json(archive, "schema.json"),
        models=models,
        calibration=_get_json(archive, "calibration.json"),
        report=_get_json(archive, "report.json"),
        library=str(manifest["library"]),
    )


def _refuse_newer(manifest: dict[str, Any], source: Path) -> None:
    newer = int(manifest["format"]) > FORMAT or any(
        int(version) > SECTIONS.get(name, 0) for name, version in manifest["sections"].items() if name in SECTIONS
    )
    if newer:
        raise ModelFileError(
            f"{source} was written by Countless {manifest['library']}, and this is {__version__}: "
            "pip install --upgrade countless"
        )


def _get(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > most:
        raise ValueError(f"{name} says it has {info.file_size:,} bytes")
    with archive.open(info) as member:
        data = member.read(most)  # the size in the header may lie
    if len(data) != info.file_size:
        raise ValueError(f"{name} is cut short")
    return data


def _get_json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        data = json.loads(_get(archive, name, LARGEST_JSON))
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"{name} is not an object")
    return data


def _damaged(source: Path, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{source} is not a Countless model file, or it is damaged ({error}): copy it again or fit it anew"
    )
