"""Encoding on a cluster: all machines write a table's codes into one shared folder.

The same pieces of the table are read as on one machine, and the same codes are written, byte for byte. Ray Data assigns
missing chunks to machines, and assigns those of a lost machine again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from countless.cluster.domains import MergedScans
from countless.cluster.rows import ParquetRows, parquet_rows, reader
from countless.cluster.session import Cluster
from countless.data.columns.schema import Schema
from countless.data.encoding.code_files import CodesFolder
from countless.data.encoding.encoder import CHANGED, Encoder
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import codes_folder, fill_records, mapped_table
from countless.data.encoding.table import Table, find_schema, with_advice
from countless.data.progress import QUIET, Events, Meter
from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError
from countless.options import EncodeOptions

LEAST_SENT = 1 << 16  # the least number of values of a column that a piece of a table sends, if it has them


def encode_on(
    cluster: Cluster,
    source: Source,
    options: EncodeOptions,
    path: Path,
    memory: Memory,
    *,
    seed: int = 0,
    resume: bool = False,
    events: Events = QUIET,
) -> Table:
    """The table of ``source`` with its codes in a folder at ``path``, which all machines can access.

    With ``resume``, the finished files of an earlier pass are used, as in :func:`.encode_mapped`.
    """
    options = with_advice(options, source.advice)
    copy = path.with_name(path.name + "-rows.parquet")
    if not resume:
        copy.unlink(missing_ok=True)

    def find() -> Schema:
        rows = parquet_rows(cluster, source, copy, events.stage)
        most = max(LEAST_SENT, 2 * options.max_distinct)
        events.stage("reading all columns")
        finder = MergedScans(source, rows, _ClusterPass(cluster, rows.total, events).over, most)
        return find_schema(finder, options, lambda stage, rows=None: events.stage(stage))

    folder = codes_folder(source, options, path, memory, find, seed=seed, resume=resume)
    passes = _ClusterPass(cluster, folder.schema.rows, events)
    chunks = folder.missing_chunks()
    if chunks:
        rows = parquet_rows(cluster, source, copy, events.stage)
        events.stage("encoding rows")
        if rows.total != folder.schema.rows:
            raise DataError(CHANGED)
        passes.run(partial(write_chunk, str(path), rows), chunks, folder.chunks)
    parts = [index for index in range(folder.parts) if not folder.has_part(index)]
    if parts:
        events.stage("shuffling rows")
        passes.run(partial(write_part, str(path)), parts, folder.parts)
    folder.tidy()
    copy.unlink(missing_ok=True)
    return mapped_table(folder, memory)


def write_chunk(path: str, rows: ParquetRows, index: int) -> None:
    """Encode a chunk on this machine."""
    folder = CodesFolder.open(Path(path))
    first = index * folder.chunk_rows
    records = np.empty(folder.rows_of(index), dtype=folder.record)
    source = Source.open(reader(rows.between(first, first + len(records)), folder.schema.names))
    done = 0
    for batch in Encoder(source, folder.schema).batches():
        fill_records(records[done : done + batch.rows], batch, 0)
        done += batch.rows
    if done != len(records):
        raise DataError(CHANGED)
    folder.write_chunk(index, records)


def write_part(path: str, index: int) -> None:
    """Shuffle a part on this machine."""
    CodesFolder.open(Path(path)).write_part(index)


@dataclass(frozen=True)
class _ClusterPass:
    """Calls functions of an index on all machines, and reports progress."""

    cluster: Cluster
    rows: int
    events: Events

    def run(self, function: Callable[[int], None], indexes: list[int], total: int) -> None:
        """Call the function for the missing ``indexes`` of ``total``."""
        for _ in self.over(function, indexes, total - len(indexes)):
            pass

    def over(self, function: Callable[[int], Any], indexes: list[int], done: int = 0) -> Iterator[Any]:
        """The results of the function for every index. ``done`` other indexes were finished before."""
        total = done + len(indexes)
        meter = Meter(self.events.reading, self.rows, done / total)
        for finished, table in enumerate(on_all(self.cluster, function, indexes), done + 1):
            meter.at(finished / total)
            yield table


def on_all(cluster: Cluster, function: Callable[[int], Any], indexes: list[int]) -> Iterator[Any]:
    """The results of a function for every index, Arrow tables or None, in any order. Its errors are raised."""
    from ray.data import DataContext, from_items

    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    items = from_items([{"index": index} for index in indexes], override_num_blocks=len(indexes))
    answers = items.map_batches(_RayFunction(function), batch_size=1, batch_format="pyarrow", num_cpus=1)
    for table in answers.iter_batches(batch_size=None, batch_format="pyarrow"):
        if "error" in table.column_names:
            raise DataError(str(table["error"][0]))
        yield table


class _RayFunction:
    """Adapts a function of an index to Ray Data, which passes a table of one row and expects a table.

    Ray repeats calls that fail. An error of ours would occur again, so it is returned as a table.
    """

    __name__ = "countless"

    def __init__(self, function: Callable[[int], Any]) -> None:
        self._function = function

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        try:
            result = self._function(batch["index"][0].as_py())
        except CountlessError as error:
            return pa.table({"error": [str(error)]})
        return batch if result is None else result
