"""The rows of a source as Parquet files in the shared folder, which workers read in arbitrary ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless.cluster.session import Cluster
from countless.data.columns.types import quote_identifier, stored_type
from countless.data.sources.file_formats import quote_path
from countless.data.sources.source import Source, connect

PARQUET = (".parquet", ".pq")
LONG_INTEGERS = ("HUGEINT", "UHUGEINT")  # Parquet has no integers of this length: they are written as text


@dataclass(frozen=True)
class ParquetRows:
    """Parquet files with the same columns, and the number of rows of each."""

    files: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def between(self, first: int, end: int) -> list[tuple[str, int, int]]:
        """The files that have the rows from ``first`` to ``end``, each with the range of its own rows.

        >>> ParquetRows(("a", "b"), (10, 10)).between(8, 12)
        [('a', 8, 10), ('b', 0, 2)]
        """
        ranges, file_start = [], 0
        for file, count in zip(self.files, self.counts, strict=True):
            low, high = max(first, file_start) - file_start, min(end, file_start + count) - file_start
            if low < high:
                ranges.append((file, low, high))
            file_start += count
        return ranges


def parquet_rows(cluster: Cluster, source: Source, copy: Path, on_stage: Callable[[str], None]) -> ParquetRows:
    """The files of ``source`` if they are Parquet and on all machines; otherwise its rows are written to ``copy``.

    DuckDB renames columns whose names differ in case only. They are not found in the files, so such a table is copied.
    """
    files = source.files
    parquet = bool(files) and all(file.endswith(PARQUET) for file in files)
    if not parquet or not _has_columns(files[0], source) or not _all_machines_have(cluster, files):
        files = (str(copy),)
        if not copy.exists():
            on_stage("copying rows to where all machines see them")
            _write(source, copy)
    metadata = (
        connect()
        .execute("SELECT file_name, num_rows FROM parquet_file_metadata($files)", {"files": list(files)})
        .fetchall()
    )
    counts = {name: int(count) for name, count in metadata}
    return ParquetRows(files, tuple(counts[file] for file in files))


def reader(ranges: Sequence[tuple[str, int, int]], columns: Sequence[str]) -> Any:
    """An Arrow reader of some rows of files, to be read once. Row groups without these rows are skipped."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _flattened(pq.read_schema(ranges[0][0]).empty_table(), columns)
    return pa.RecordBatchReader.from_batches(table.schema, _batches(ranges, list(columns)))


def _batches(ranges: Sequence[tuple[str, int, int]], columns: list[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    for file, first, end in ranges:
        with pq.ParquetFile(file) as parquet:
            group_start = 0
            for group in range(parquet.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                low, high = max(first, group_start) - group_start, min(end, group_start + count) - group_start
                if low < high:
                    table = parquet.read_row_group(group, columns=columns, use_threads=False)
                    yield from _flattened(table.slice(low, high - low), columns).to_batches()
                group_start += count


def _flattened(table: Any, columns: Sequence[str]) -> Any:
    """Some columns of an Arrow table. A column that it lacks is a field of a struct, such as ``address.city``."""
    while not set(columns) <= set(table.column_names):
        flattened = table.flatten()
        if flattened.num_columns == table.num_columns and flattened.column_names == table.column_names:
            break  # nothing is left to flatten: Arrow names the missing column
        table = flattened
    return table.select(list(columns))


def _has_columns(file: str, source: Source) -> bool:
    """Whether a Parquet file has all columns of ``source`` that can be modelled, or structs with these fields."""
    import pyarrow.parquet as pq

    names = [name for name, kind in source.columns() if stored_type(kind) is not None]
    try:
        _flattened(pq.read_schema(file).empty_table(), names)
    except KeyError:
        return False
    return True


def _all_machines_have(cluster: Cluster, files: Sequence[str]) -> bool:
    """Whether every machine has all files with the same sizes as here."""
    sizes = [Path(file).stat().st_size for file in files]
    return all(sizes_there == sizes for _, sizes_there in cluster.everywhere(sizes_of, list(files)))


def sizes_of(files: list[str]) -> list[int | None]:
    """The sizes of the files on this machine; None for a missing file."""
    sizes: list[int | None] = []
    for file in files:
        size = None
        with suppress(OSError):
            size = Path(file).stat().st_size
        sizes.append(size)
    return sizes


def _write(source: Source, target: Path) -> None:
    """Write the columns that can be modelled to a Parquet file."""
    selected = []
    for name, kind in source.columns():
        column = quote_identifier(name)
        stored = stored_type(kind)
        if stored is not None:
            as_text = stored in LONG_INTEGERS or stored != kind
            selected.append(f"CAST({column} AS VARCHAR) AS {column}" if as_text else column)
    partial = target.with_name(target.name + ".partial")
    sql = f"COPY (SELECT {', '.join(selected)} FROM {source.table}) TO {quote_path(str(partial))} (FORMAT parquet)"
    source.run(sql)
    partial.replace(target)
