"""Out-of-core encoding: the codes of a table larger than memory are shuffled into a folder and read from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless._version import __version__
from countless.data.columns.schema import Schema
from countless.data.encoding.code_files import CodesFolder, is_empty, require_replaceable
from countless.data.encoding.encoder import CHANGED, EncodedRows, Encoder
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.table import Mapped, Table, read_schema, with_advice
from countless.data.progress import QUIET, Events, Meter
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.options import EncodeOptions
from countless.settings import names

LEAST_WINDOW = 1 << 12  # rows


def encode_mapped(
    source: Source,
    options: EncodeOptions,
    path: Path,
    memory: Memory,
    *,
    schema: Schema | None = None,
    seed: int = 0,
    resume: bool = False,
    events: Events = QUIET,
) -> Table:
    """The table of ``source`` with its codes in a folder at ``path``, encoded within the limits of ``memory``.

    If the ``schema`` is given, it is not read again. With ``resume``, the results of an earlier pass in the folder are
    used: its schema, and the chunks and parts that are complete.
    """
    options = with_advice(options, source.advice)

    def find_schema() -> Schema:
        return schema or read_schema(source, options, events)

    folder = codes_folder(source, options, path, memory, find_schema, seed=seed, resume=resume)
    _write_chunks(source, folder, events)
    _write_parts(folder, events)
    return mapped_table(folder, memory)


def codes_folder(
    source: Source,
    options: EncodeOptions,
    path: Path,
    memory: Memory,
    find_schema: Callable[[], Schema],
    *,
    seed: int,
    resume: bool,
) -> CodesFolder:
    """The folder of codes at ``path``: with ``resume`` that of a stopped fit, else a new one."""
    require_replaceable(path)  # before the table is read, which may take long
    fingerprint = codes_fingerprint(source, options, seed)
    if resume and not is_empty(path):
        return CodesFolder.open(path, fingerprint)
    return CodesFolder.create(path, find_schema(), fingerprint, memory.block, seed)


def mapped_table(folder: CodesFolder, memory: Memory) -> Table:
    """The table of a finished folder. Training reads it in windows that fit in ``memory``."""
    window = max(LEAST_WINDOW, memory.block // folder.row_bytes // 2)
    matrix = folder.matrix() if folder.schema.sizes else None
    codes = () if matrix is None else tuple(matrix[:, position] for position in range(matrix.shape[1]))
    return Table(folder.schema, codes, folder.strings(), Mapped(matrix, window, folder.digest()))


def codes_fingerprint(source: Source, options: EncodeOptions, seed: int) -> str:
    """The identity of the codes of this table under these options: a JSON object with a digest of each of them."""
    encoding = {name: getattr(options, name) for name in names(EncodeOptions)}
    fields = {"version": __version__, "table": source.fingerprint(), **encoding, "seed": seed}
    digests = {name: hashlib.blake2b(json.dumps(value).encode(), digest_size=16) for name, value in fields.items()}
    return json.dumps({name: digest.hexdigest() for name, digest in digests.items()})


def _write_chunks(source: Source, folder: CodesFolder, events: Events) -> None:
    """Encode the rows, starting with the first missing chunk."""
    missing = folder.missing_chunks()
    if not missing:
        return
    events.stage("encoding rows")
    index = missing[0] if source.files else 0  # sources without files may return their rows in another order
    rows = folder.schema.rows
    done = index * folder.chunk_rows
    meter = Meter(events.reading, rows, done / rows)
    records = np.empty(folder.rows_of(index), dtype=folder.record)
    filled = 0
    for batch in Encoder(source, folder.schema).batches(done):
        used = 0
        while used < batch.rows:
            if index == folder.chunks:
                raise DataError(CHANGED)
            count = min(batch.rows - used, len(records) - filled)
            fill_records(records[filled : filled + count], batch, used)
            used, filled, done = used + count, filled + count, done + count
            if filled == len(records):
                folder.write_chunk(index, records)
                index, filled = index + 1, 0
                records = records[: folder.rows_of(index)] if index < folder.chunks else records
        meter.at(done / rows)
    if index != folder.chunks:
        raise DataError(CHANGED)


def fill_records(records: NDArray[Any], batch: EncodedRows, first: int) -> None:
    """Fill ``records`` with the rows of a batch, starting at row ``first``."""
    rows = slice(first, first + len(records))
    for position, codes in enumerate(batch.codes):
        records["codes"][:, position] = codes[rows]
    for index, strings in enumerate(batch.strings):
        records[f"text{index}"] = strings.symbols[rows]
        records[f"length{index}"] = strings.lengths[rows]


def _write_parts(folder: CodesFolder, events: Events) -> None:
    """Shuffle and write the missing parts."""
    missing = [index for index in range(folder.parts) if not folder.has_part(index)]
    if missing:
        events.stage("shuffling rows")
        meter = Meter(events.reading, folder.schema.rows, 1 - len(missing) / folder.parts)
        for done, index in enumerate(missing, folder.parts - len(missing) + 1):
            folder.write_part(index)
            meter.at(done / folder.parts)
    folder.tidy()
