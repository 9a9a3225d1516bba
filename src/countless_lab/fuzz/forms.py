"""The forms of a random table: files that DuckDB writes, some with bytes that are not UTF-8, or data frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from pyarrow import ipc

from countless.data.columns.types import quote_identifier
from countless.data.sources.connection import connect
from countless.data.sources.file_formats import quote_path
from countless_lab.fuzz.tables import ARROW, CSV, DUCKDB, JSON, PANDAS, PARQUET, POLARS, RELATION, RandomTable

FRAME_ROWS = "made.arrow"
FORMATS = {PARQUET: "parquet", CSV: "csv", JSON: "json"}
BROKEN = (b"\xff\xfe", b"\x81\x8d", b"\xe9", b"\xed\xa0\x80")  # never valid, or not after a letter


def materialize(table: RandomTable, folder: Path) -> Any:
    """The table as :func:`countless.fit` takes it. Files, and the rows of a data frame, are written to ``folder``."""
    if table.form == DUCKDB:
        path = folder / "made.duckdb"
        with duckdb.connect(path) as database:
            database.execute("SET TimeZone = 'UTC'")
            database.execute(f"CREATE TABLE made AS {table.select}")
        return str(path)
    connection = connect()
    connection.execute(f"CREATE TABLE made AS {table.select}")
    relation = connection.table("made")
    if table.form in FORMATS:
        path = folder / f"made.{FORMATS[table.form]}"
        options = "header false" if table.form == CSV else f"format {FORMATS[table.form]}"
        connection.execute(f"COPY made TO {quote_path(str(path))} ({options})")
        if table.form == CSV:
            _finish_csv(table, path)
        return str(path)
    _write_arrow(table, relation, folder / FRAME_ROWS)
    return _frame(table, relation)


def _finish_csv(table: RandomTable, path: Path) -> None:
    """Put the names in the first line, and bytes that are no UTF-8 in the last one."""
    rows = path.read_bytes()
    if table.invalid_utf8:
        rows = rows.rstrip(b"\n") + BROKEN[table.seed % len(BROKEN)] + b"\n"
    path.write_bytes((",".join(map(quote_identifier, table.names)) + "\n").encode() + rows)


def _write_arrow(table: RandomTable, relation: duckdb.DuckDBPyRelation, path: Path) -> None:
    """Write the rows of a frame as an Arrow file, so that a defect can be looked at without its seed."""
    rows = relation.to_arrow_table().rename_columns(list(table.names))
    with ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)


def _frame(table: RandomTable, relation: duckdb.DuckDBPyRelation) -> Any:
    names = list(table.names)
    if table.form == PANDAS:
        return relation.df().set_axis(names, axis="columns")
    if table.form == POLARS:
        frame = relation.pl()
        return frame.rename(dict(zip(frame.columns, names, strict=True)))
    if table.form == ARROW:
        return relation.to_arrow_table().rename_columns(names)
    assert table.form == RELATION
    return relation
