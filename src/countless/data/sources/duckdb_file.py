"""A DuckDB database file as a source, opened read-only."""

from __future__ import annotations

from pathlib import Path

import duckdb

from countless.data.columns.types import quote_identifier
from countless.data.sources.connection import connect, first_line
from countless.data.sources.file_formats import quote_path
from countless.data.sources.location import DATABASES, Location, choose
from countless.data.sources.missing_files import missing_file
from countless.data.sources.regular_files import require_regular
from countless.errors import SourceError

ATTACHED = "source"  # the name of the database inside DuckDB
TABLES = f"""
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = '{ATTACHED}' AND NOT internal
UNION ALL
SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = '{ATTACHED}' AND NOT internal
ORDER BY ALL
"""


def open_query(location: Location, name: str) -> duckdb.DuckDBPyConnection:
    """A connection in which ``name`` is a view of ``location``'s query, which names the files that it reads."""
    connection = connect()
    try:
        connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS SELECT * FROM ({location.query}\n)")
    except duckdb.Error as error:
        raise SourceError(f"the query cannot be run: {first_line(error)}") from None
    return connection


def open_database(location: Location, name: str) -> duckdb.DuckDBPyConnection:
    """A connection in which ``name`` is a view of ``location``'s table or query; the file is opened read-only."""
    path = Path(location.database)
    if not path.exists():
        raise missing_file(path, DATABASES)
    if path.is_dir():
        raise SourceError(f"{path} is a directory: give a DuckDB database file")
    require_regular(path)
    connection = connect()
    try:
        connection.execute(f"ATTACH {quote_path(str(path))} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
    except (duckdb.Error, RuntimeError) as error:
        raise SourceError(f"cannot open {path}: {_reason(error)}") from None
    try:
        connection.execute(f"USE {ATTACHED}")
        if location.query is None:
            tables = [(str(schema), str(table)) for schema, table in connection.execute(TABLES).fetchall()]
            schema, table = choose(tables, location.table, location.database, ["main"])
            select = f"SELECT * FROM {ATTACHED}.{quote_identifier(schema)}.{quote_identifier(table)}"
        else:
            select = f"SELECT * FROM ({location.query}\n)"
        connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS {select}")
    except duckdb.Error as error:
        what = "the query cannot be run" if location.query else "cannot read it"
        raise SourceError(f"{path}: {what}: {first_line(error)}") from None
    return connection


def _reason(error: BaseException) -> str:
    """Why the file cannot be attached, and what to do."""
    message = first_line(error)
    if "Conflicting lock" in message or "set lock" in message:
        return "another process has it open for writing; close it there, or read a copy"
    if "already attached" in message:
        return "this process has it open; close that connection, or give one of its relations instead"
    if "not a valid DuckDB database" in message:
        return "it is not a DuckDB database"
    if "newer" in message or "storage version" in message or "version number" in message:
        return f"it was written by another version of DuckDB than {duckdb.__version__}; pip install -U duckdb"
    return message
