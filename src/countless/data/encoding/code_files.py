"""A table's codes as files in a folder: for tables larger than memory, and for parallel writers and readers.

Rows arrive in *chunks*, in the source's order. The rows of a chunk are distributed over the *parts* at random. Then
each part is shuffled, and written at its offset in the finished files. So the finished files are in random order
throughout, and no more than a chunk or a part is ever in memory. Chunks, and then parts, may be written in any order,
by any process that can write to the folder.

::

    manifest.json         what table it is, with its schema; chunks and parts
    chunk-000000.bin      the rows of a chunk, sorted by part, until all are shuffled
    chunk-000000.json     how many rows of each part are in the chunk: written when it is complete
    codes.bin             the codes (rows, positions) of the columns
    text0.bin             the symbols (rows, length + 1) of the first text column
    length0.bin           how many symbols each row has
    part-000000.json      a digest of the part: written when it is complete
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.cached_property import cached_property
from countless.data.atomic_files import write_whole
from countless.data.columns.digits import code_type
from countless.data.columns.schema import Schema
from countless.data.columns.strings.text import Strings, symbol_type
from countless.data.encoding.memory_limit import readable
from countless.errors import CountlessError, DataError

VERSION = 1
MANIFEST = "manifest.json"
PARTIAL = ".partial"
OURS = re.compile(r"(chunk|part)-\d{6}\.(bin|json)|(codes|text\d+|length\d+)\.bin|.*\.partial")  # names of files
MOST_PARTS = 1 << 16
SCATTER, SHUFFLE = 1, 2  # streams of random numbers
ANEW = "fit again without --resume"


class CodesFolder:
    """The codes of one table at ``path``, finished or not."""

    def __init__(self, path: Path, manifest: dict[str, Any], schema: Schema) -> None:
        self.path, self.schema = path, schema
        self.fingerprint = str(manifest["fingerprint"])
        self.seed, self.chunk_rows, self.parts = (int(manifest[name]) for name in ("seed", "chunk_rows", "parts"))
        self.record = record_type(schema)
        if self.chunk_rows < 1 or not 1 <= self.parts <= MOST_PARTS or manifest["row_bytes"] != self.record.itemsize:
            raise ValueError("its sizes do not fit together")
        self.chunks = -(-schema.rows // self.chunk_rows)

    @classmethod
    def create(cls, path: Path, schema: Schema, fingerprint: str, block: int, seed: int = 0) -> CodesFolder:
        """A new folder, with chunks and parts of about ``block`` bytes; codes of an earlier fit are removed."""
        row_bytes = record_type(schema).itemsize
        manifest = {
            "countless_codes": VERSION,
            "fingerprint": fingerprint,
            "seed": seed,
            "chunk_rows": max(1, block // row_bytes),
            "parts": min(MOST_PARTS, max(1, -(-schema.rows * row_bytes // block))),
            "row_bytes": row_bytes,
            "schema": schema.to_json(),
        }
        folder = cls(path, manifest, schema)
        remove(path)
        folder._require_space()
        try:
            path.mkdir()
        except OSError as error:
            raise DataError(f"cannot make the folder {path}: {error.strerror}; choose another place") from None
        folder._write(MANIFEST, manifest)
        return folder

    @classmethod
    def open(cls, path: Path, fingerprint: str | None = None) -> CodesFolder:
        """The folder at ``path``. If a ``fingerprint`` is given, it must be that of the folder."""
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            if manifest["countless_codes"] != VERSION:
                raise DataError(f"{path} was written by another version: {ANEW}")
            folder = cls(path, manifest, Schema.from_json(manifest["schema"]))
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, CountlessError) as error:
            raise DataError(f"{path} is not a readable folder of codes ({_reason(error)}): {ANEW}") from None
        if fingerprint is not None and folder.fingerprint != fingerprint:
            raise DataError(f"{path} holds codes of {_difference(folder.fingerprint, fingerprint)}: {ANEW}")
        return folder

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, in all files together."""
        return self.record.itemsize

    @property
    def finished(self) -> bool:
        """Whether all rows are written and shuffled."""
        return all(self.has_part(index) for index in range(self.parts))

    def missing_chunks(self) -> list[int]:
        """The chunks that are not written yet."""
        if self.finished:
            return []
        return [index for index in range(self.chunks) if not (self.path / f"chunk-{index:06d}.json").exists()]

    def rows_of(self, chunk: int) -> int:
        """The number of rows of a chunk: the last one may have fewer than the others."""
        return min(self.chunk_rows, self.schema.rows - chunk * self.chunk_rows)

    def write_chunk(self, index: int, records: NDArray[Any]) -> None:
        """Write the rows of a chunk, which are records of type :attr:`record`, sorted by a random part for each."""
        if records.dtype != self.record or len(records) != self.rows_of(index):
            raise ValueError(f"chunk {index} has {self.rows_of(index)} records")
        rng = np.random.default_rng([self.seed, SCATTER, index])
        parts = rng.integers(self.parts, size=len(records), dtype=np.uint16 if self.parts > 1 else np.uint8)
        scattered = records[np.argsort(parts, kind="stable")]
        target = self.path / f"chunk-{index:06d}.bin"
        partial = target.with_suffix(f".{os.getpid()}.partial")
        with self._write_errors():
            with open(partial, "wb") as file:
                file.write(scattered.view(np.uint8).data)
            os.replace(partial, target)
        self._write(f"chunk-{index:06d}.json", {"rows": np.bincount(parts, minlength=self.parts).tolist()})

    def has_part(self, index: int) -> bool:
        """Whether a part is written."""
        return (self.path / f"part-{index:06d}.json").exists()

    def write_part(self, index: int) -> int:
        """Shuffle the rows of a part and write them at its offset, once all chunks exist; return the number of rows."""
        counts = self._rows_by_part
        starts = np.cumsum(counts, axis=1) - counts
        slices = [self._records(chunk, starts[chunk, index], counts[chunk, index]) for chunk in range(self.chunks)]
        records = np.concatenate(slices)
        del slices
        records = records[np.random.default_rng([self.seed, SHUFFLE, index]).permutation(len(records))]
        first = int(counts[:, :index].sum())
        digest = hashlib.blake2b(records.view(np.uint8).data, digest_size=16)
        for name in self.record.names or ():
            field = np.ascontiguousarray(records[name])
            with self._write_errors():
                _write_at(self._file(name), first * self.record[name].itemsize, field)
        self._write(f"part-{index:06d}.json", {"rows": len(records), "digest": digest.hexdigest()})
        return len(records)

    def tidy(self) -> None:
        """Remove the chunks, once all parts are written."""
        for pattern in ("chunk-*", "*.partial"):
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)

    def matrix(self) -> NDArray[Any]:
        """The codes (rows, positions) of the columns, memory-mapped."""
        return self._mapped("codes")

    def strings(self) -> tuple[Strings, ...]:
        """The symbols of each text column, memory-mapped."""
        return tuple(
            Strings(self._mapped(f"text{index}"), self._mapped(f"length{index}"))
            for index in range(len(self.schema.texts))
        )

    def digest(self) -> str:
        """A digest of the schema and all rows in their order."""
        digest = hashlib.blake2b(repr(self.schema.to_json()).encode(), digest_size=16)
        for index in range(self.parts):
            digest.update(str(self._read(f"part-{index:06d}.json")["digest"]).encode())
        return digest.hexdigest()

    @cached_property
    def _rows_by_part(self) -> IntArray:
        """The number of rows (chunks, parts) of each part in each chunk."""
        counts = []
        for index in range(self.chunks):
            rows = self._read(f"chunk-{index:06d}.json").get("rows")
            if not isinstance(rows, list) or len(rows) != self.parts or sum(rows) != self.rows_of(index):
                raise self._damaged(f"chunk-{index:06d}.json")
            counts.append(rows)
        return np.array(counts, dtype=np.int64)

    def _records(self, chunk: int, first: int, count: int) -> NDArray[Any]:
        """``count`` records of a chunk, from the one at ``first`` on."""
        name = f"chunk-{chunk:06d}.bin"
        try:
            if (self.path / name).stat().st_size != self.rows_of(chunk) * self.row_bytes:
                raise self._damaged(name)
            return np.fromfile(self.path / name, dtype=self.record, count=count, offset=int(first) * self.row_bytes)
        except OSError:
            raise self._damaged(name) from None

    def _mapped(self, name: str) -> NDArray[Any]:
        """The finished file of a field of the records, memory-mapped."""
        field = self.record[name]
        shape = (self.schema.rows, *field.shape)
        try:
            if self._file(name).stat().st_size != self.schema.rows * field.itemsize:
                raise self._damaged(f"{name}.bin")
            return np.memmap(self._file(name), dtype=field.base, mode="r", shape=shape)
        except OSError:
            raise self._damaged(f"{name}.bin") from None

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.bin"

    def _read(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            data = None
        if not isinstance(data, dict):
            raise self._damaged(name)
        return data

    def _write(self, name: str, data: dict[str, Any]) -> None:
        with self._write_errors():
            write_whole(self.path / name, lambda partial: Path(partial).write_text(json.dumps(data), encoding="utf-8"))

    def _damaged(self, name: str) -> DataError:
        return DataError(f"{self.path / name} is damaged or missing: {ANEW}")

    def _require_space(self) -> None:
        """Raise an error if the disk is too small: chunks and parts exist at the same time."""
        needed = 2 * self.schema.rows * self.row_bytes
        free = shutil.disk_usage(self.path.parent).free
        if free < needed:
            message = f"the codes need {readable(needed)}, and {readable(free)} are free"
            raise DataError(f"the disk of {self.path} is too small: {message}; free some space or choose another place")

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Make an OSError in this block a DataError that says what to do."""
        try:
            yield
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            needed = f"the codes need {readable(2 * self.schema.rows * self.row_bytes)} in all"
            full = f"the disk is full, {needed}; free some space"
            reason = full if is_full else f"{error.strerror}; choose another place"
            raise DataError(f"cannot write to {self.path}: {reason}, and continue with --resume") from None


def _difference(stored: str, expected: str) -> str:
    """What differs between two fingerprints, for a message.

    >>> _difference('{"table": "a", "seed": 1, "max_distinct": 9}', '{"table": "a", "seed": 2, "max_distinct": 8}')
    'another --seed, --max-distinct'
    """
    try:
        old, new = json.loads(stored), json.loads(expected)
        names = [name for name in new if old.get(name) != new[name]]
    except (ValueError, AttributeError, TypeError):
        names = []
    shown = [name if name in ("table", "version") else f"--{name.replace('_', '-')}" for name in names]
    return f"another {', '.join(shown)}" if shown else "another table, or of other options"


def record_type(schema: Schema) -> np.dtype[Any]:
    """The type of a row: its codes, in the smallest signed type, and the symbols and length of each string."""
    fields: list[Any] = []
    if schema.sizes:
        fields.append(("codes", code_type(schema.sizes), (len(schema.sizes),)))
    for index, text in enumerate(schema.texts):
        fields.append((f"text{index}", symbol_type(text).newbyteorder("<"), (text.length + 1,)))
        fields.append((f"length{index}", "<i4"))
    return np.dtype(fields)


def is_codes(path: Path) -> bool:
    """Whether there is a folder of codes at ``path``, complete or not."""
    return (path / MANIFEST).exists()


def is_empty(path: Path) -> bool:
    """Whether nothing useful is at ``path``: no folder, or one of a fit that was killed before it wrote anything."""
    return not path.exists() or (path.is_dir() and all(file.suffix == PARTIAL for file in path.iterdir()))


def require_replaceable(path: Path) -> None:
    """Raise an error if the folder holds anything but codes. One with codes but no manifest may be replaced."""
    if is_empty(path) or is_codes(path):
        return
    if not path.is_dir() or not all(OURS.fullmatch(file.name) for file in path.iterdir()):
        raise DataError(f"{path} exists and is not a folder of codes: remove it first, or choose another place")


def remove(path: Path) -> None:
    """Remove a folder of codes, if there is one; a folder of anything else is an error.

    The manifest is removed last, so that what an interrupted removal leaves is still a folder of codes.
    """
    require_replaceable(path)
    if not path.exists():
        return
    for file in path.iterdir():
        if file.name != MANIFEST:
            file.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def spill_prefix(path: Path) -> str:
    """The prefix of names of folders beside ``path`` to which DuckDB spills while codes are written."""
    return f"{path.name}-spill-"


def remove_spills(path: Path) -> None:
    """Remove the folders beside ``path`` to which DuckDB spilled for a fit that was killed."""
    for folder in path.parent.glob(glob.escape(spill_prefix(path)) + "*"):
        shutil.rmtree(folder, ignore_errors=True)


def _write_at(path: Path, offset: int, array: NDArray[Any]) -> None:
    """Write an array into a file at a byte offset; the file is made if it does not exist."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        data = array.view(np.uint8).reshape(-1).data
        done = 0
        while done < len(data):
            done += os.pwrite(handle, data[done:], offset + done)
    finally:
        os.close(handle)


def _reason(error: BaseException) -> str:
    """Why a folder cannot be read, for a message."""
    return f"there is no {MANIFEST}" if isinstance(error, FileNotFoundError) else str(error).splitlines()[0]
