"""Mutations of model files: of the archive, of its JSON, of the headers of its arrays, or of the arrays."""

from __future__ import annotations

import copy
import io
import json
import math
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

Members = dict[str, bytes]
Random = np.random.Generator
Arrays = dict[str, NDArray[Any]]

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-320),
    *(math.inf, -math.inf, math.nan, "", "x", "1", "-1", "1e9999", "\x00", "\ud800", "NaN", "9" * 5000, "Ł"),
    *([], {}, [[]], [None], [0], [[0]], ["a", 1], {"a": 1}, [1.5, -2], [math.inf]),
)
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def mutated(data: bytes, rng: Random) -> bytes:
    """The bytes of a model file with one mutation."""
    kind = (_zip, _json, _json, _header, spoiled_arrays, spoiled_arrays)[int(rng.integers(6))]
    return kind(data, rng)


def members_of(data: bytes) -> Members:
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(members: Members, compressions: dict[str, int] | None = None) -> bytes:
    """An archive of the members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            usual = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), data, (compressions or {}).get(name, usual))
    return file.getvalue()


def pick(rng: Random, items: Any) -> Any:
    """A random item."""
    items = list(items)
    return items[int(rng.integers(len(items)))]


def _zip(data: bytes, rng: Random) -> bytes:
    """Change, insert or cut bytes; or drop, double, cut or recompress a member."""
    offset = int(rng.integers(len(data)))
    members = members_of(data)
    name = pick(rng, members)
    directory = data.rfind(b"PK\x01\x02")
    match int(rng.integers(9)):
        case 0:
            return data[:offset]
        case 1:
            return data[:offset] + bytes([int(rng.integers(256))]) + data[offset + 1 :]
        case 2:
            return data[:offset] + rng.bytes(int(rng.integers(1, 9))) + data[offset:]
        case 3:
            return data[:offset] + data[offset + int(rng.integers(1, 100)) :]
        case 4:  # in the last entry of the directory, where sizes and kinds of compression are
            at = directory + int(rng.integers(4, 46))
            return data[:at] + rng.bytes(1) + data[at + 1 :]
        case 5:
            return archived({key: member for key, member in members.items() if key != name})
        case 6:
            return archived(members, {name: pick(rng, COMPRESSIONS)})
        case 7:
            return archived(members | {name: members[pick(rng, members)]})
        case _:
            return archived(members | {name: members[name][: int(rng.integers(len(members[name]) + 1))]})


def _json(data: bytes, rng: Random) -> bytes:
    """Change, drop, double, rename or move a value of a JSON section."""
    members = members_of(data)
    name = pick(rng, (key for key in members if key.endswith(".json")))
    section = json.loads(members[name])
    _change(section, rng)
    return archived(members | {name: json.dumps(section).encode()})


def _change(section: Any, rng: Random) -> None:
    parent, key = pick(rng, _same_name(list(_entries(section)), rng))
    value = parent[key]
    match int(rng.integers(8)):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.append(copy.deepcopy(value))
        case 1:
            parent[pick(rng, parent)] = copy.deepcopy(value)
        case 2 if isinstance(value, int | float):
            parent[key] = value + pick(rng, (1, -1, 0.5, 10**6, -(10**6)))
        case 3 if isinstance(value, str):
            parent[key] = value + pick(rng, ("x", "0", "\x00", " ", "'", ")", "-", "e9"))
        case 4 if isinstance(parent, list) and len(parent) > 1:
            other_index = int(rng.integers(len(parent)))
            parent[key], parent[other_index] = parent[other_index], parent[key]
        case 5 if isinstance(parent, dict):
            parent[pick(rng, ("x", "", "kind"))] = parent.pop(key)
        case _:
            parent[key] = copy.deepcopy(pick(rng, ODD))


def _same_name(entries: list[tuple[Any, Any]], rng: Random) -> list[tuple[Any, Any]]:
    """All entries of one random name, or of lists of one type, so that long lists do not hide the other entries."""
    by_name: dict[Any, list[tuple[Any, Any]]] = {}
    for parent, key in entries:
        by_name.setdefault(key if isinstance(key, str) else type(parent[key]).__name__ + "[]", []).append((parent, key))
    group: list[tuple[Any, Any]] = pick(rng, by_name.values())
    return group


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every object, and every index of every list."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _entries(inner)


def _header(data: bytes, rng: Random) -> bytes:
    """Change the header of a file of arrays."""
    members = members_of(data)
    name = pick(rng, (key for key in members if key.endswith(".safetensors")))
    member = members[name]
    (size,) = struct.unpack("<Q", member[:8])
    header, body = json.loads(member[8 : 8 + size]), member[8 + size :]
    if rng.random() < 0.2:
        length = pick(rng, (0, size - 1, size + 1, 2**63, 2**64 - 1))
        return archived(members | {name: struct.pack("<Q", length) + member[8:]})
    if rng.random() < 0.5:
        _change(header, rng)
    else:
        entry = header[pick(rng, header)]
        entry["dtype"] = pick(rng, ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "C64", "x"))
    text = json.dumps(header).encode()
    return archived(members | {name: struct.pack("<Q", len(text)) + text + body})


def spoiled_arrays(data: bytes, rng: Random) -> bytes:
    """Change the values, the type or the shape of some arrays of a model."""
    members = members_of(data)
    name = pick(rng, (key for key in members if key.endswith(".safetensors")))
    arrays = load_arrays(members[name])
    for key in [pick(rng, arrays)] if rng.random() < 0.7 else rng.choice(list(arrays), 3).tolist():
        if key in arrays:
            _spoil(arrays, key, rng)
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    return archived(members | {name: save_arrays(contiguous)})


def _spoil(arrays: Arrays, key: str, rng: Random) -> None:
    array = arrays[key]
    spoils: list[Callable[[], NDArray[Any]]] = [
        lambda: np.zeros_like(array),
        lambda: np.full_like(array, pick(rng, _extremes(array.dtype))),
        lambda: _with_some(array, pick(rng, _extremes(array.dtype)), rng),
        lambda: ~array if array.dtype == bool else -array,
        lambda: array * array.dtype.type(pick(rng, (2, 100))),
        lambda: np.round(array.astype(np.float32)).astype(pick(rng, (np.int64, np.int8, np.float32))),
        lambda: array.astype(pick(rng, (np.float64, np.float32, np.float16, np.int32, np.uint8, np.bool_))),
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array[:-1],
        lambda: array[None],
        lambda: rng.permutation(array),
        lambda: np.frombuffer(rng.bytes(array.nbytes), dtype=array.dtype).reshape(array.shape),
        lambda: arrays[pick(rng, arrays)],
    ]
    with np.errstate(all="ignore"):
        arrays[key] = pick(rng, spoils)()
    if rng.random() < 0.05:
        del arrays[key]


def _extremes(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    if dtype.kind == "f":
        return (np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).min, 1, -1, np.finfo(dtype).tiny)
    if dtype.kind == "b":
        return (True, False)
    return (np.iinfo(dtype).max, np.iinfo(dtype).min, 0, 1)


def _with_some(array: NDArray[Any], value: Any, rng: Random) -> NDArray[Any]:
    changed = array.copy()
    if changed.size:
        changed.reshape(-1)[rng.integers(0, changed.size, 3)] = value
    return changed
