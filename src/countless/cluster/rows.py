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
LONG_INTEGERS = ("HUGEINT", "UHUGEINT")  # Parquet has none of this length: they are written as their digits


@dataclass(frozen=True)
class ParquetRows:
    """Parquet files, and how many rows each has; all have the same columns."""

    files: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def between(self, first: int, end: int) -> list[tuple[str, int, int]]:
        """The files that the rows from ``first`` to ``end`` are in: of each, its rows from one place to another.

        >>> ParquetRows(("a", "b"), (10, 10)).between(8, 12)
        [('a', 8, 10), ('b', 0, 2)]
        """
        found, begin = [], 0
        for file, count in zip(self.files, self.counts, strict=True):
            low, high = max(first, begin) - begin, min(end, begin + count) - begin
            if low < high:
                found.append((file, low, high))
            begin += count
        return found


def rows_of(cluster: Cluster, source: Source, copy: Path, on_stage: Callable[[str], None]) -> ParquetRows:
    """The files of ``source``, if they are Parquet and all machines see them; else its rows are written to ``copy``.

    DuckDB renames columns whose names differ in case only: they are not found in the files, and are copied too.
    """
    files = source.files
    parquet = bool(files) and all(file.endswith(PARQUET) for file in files)
    if not parquet or not _have_columns(files[0], source) or not _seen(cluster, files):
        files = (str(copy),)
        if not copy.exists():
            on_stage("copying rows to where all machines see them")
            _write(source, copy)
    counted = (
        connect()
        .execute("SELECT file_name, num_rows FROM parquet_file_metadata($files)", {"files": list(files)})
        .fetchall()
    )
    counts = {name: int(count) for name, count in counted}
    return ParquetRows(files, tuple(counts[file] for file in files))


def reader(pieces: Sequence[tuple[str, int, int]], columns: Sequence[str]) -> Any:
    """Arrow's reader of some rows of files, which goes over them once. Row groups without any of them are not read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _flattened(pq.read_schema(pieces[0][0]).empty_table(), columns)
    return pa.RecordBatchReader.from_batches(table.schema, _batches(pieces, list(columns)))


def _batches(pieces: Sequence[tuple[str, int, int]], columns: list[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    for file, first, end in pieces:
        with pq.ParquetFile(file) as parquet:
            begin = 0
            for group in range(parquet.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                low, high = max(first, begin) - begin, min(end, begin + count) - begin
                if low < high:
                    table = parquet.read_row_group(group, columns=columns, use_threads=False)
                    yield from _flattened(table.slice(low, high - low), columns).to_batches()
                begin += count


def _flattened(table: Any, columns: Sequence[str]) -> Any:
    """Some columns of an Arrow table, of which those that it lacks are fields of its structs: ``address.city``."""
    while not set(columns) <= set(table.column_names):
        deeper = table.flatten()
        if deeper.num_columns == table.num_columns and deeper.column_names == table.column_names:
            break  # there is nothing left to flatten, and Arrow says which column is missing
        table = deeper
    return table.select(list(columns))


def _have_columns(file: str, source: Source) -> bool:
    """Whether a Parquet file has all columns of ``source`` that can be modelled, or structs with these fields."""
    import pyarrow.parquet as pq

    wanted = [name for name, kind in source.columns() if stored_type(kind) is not None]
    try:
        _flattened(pq.read_schema(file).empty_table(), wanted)
    except KeyError:
        return False
    return True


def _seen(cluster: Cluster, files: Sequence[str]) -> bool:
    """Whether every machine has all the files, as large as here."""
    sizes = [Path(file).stat().st_size for file in files]
    return all(found == sizes for _, found in cluster.everywhere(sizes_of, list(files)))


def sizes_of(files: list[str]) -> list[int | None]:
    """How large the files are on this machine."""
    found: list[int | None] = []
    for file in files:
        size = None
        with suppress(OSError):
            size = Path(file).stat().st_size
        found.append(size)
    return found


def _write(source: Source, target: Path) -> None:
    """Write the columns that can be modelled."""
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
