"""PostgreSQL as a source: a table is read once, in one snapshot, into a DuckDB table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import duckdb

from countless.data.columns.types import quote_identifier
from countless.data.sources.connection import first_line, new_name
from countless.data.sources.interruptible import ahead
from countless.data.sources.location import Location, choose
from countless.data.sources.postgres_errors import connecting, reading
from countless.data.sources.postgres_types import TypeConversion, type_conversion
from countless.errors import MissingExtraError, SourceError

Loading: TypeAlias = Callable[[int, int | None], None]
"""Receives the number of rows read so far, and of all rows, if PostgreSQL has an estimate."""

CONNECT_SECONDS = 20  # timeout of connecting, unless the URL or the environment set one
TYPE, MODIFIER = b"POSTGRESQL:type", b"POSTGRESQL:typmod"  # keys of the driver's metadata about a column
COPY = "adbc.postgresql.use_copy"
# A read-only transaction with one snapshot, and rows in the same order each time.
BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL client_encoding TO 'UTF8'",
    "SET LOCAL synchronize_seqscans = off",
)
TABLES = """
SELECT n.nspname::text, c.relname::text, c.relispartition
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_schema_privilege(n.oid, 'USAGE')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class CopyPlan:
    """The names and conversions of the columns to read, the statement, and the expected number of rows."""

    names: tuple[str, ...]
    conversions: tuple[TypeConversion, ...]
    statement: str
    expected: int | None = None


def load_table(
    location: Location, connection: duckdb.DuckDBPyConnection, name: str, loading: Loading | None = None
) -> None:
    """Create ``name``, a temporary table of ``connection`` with the rows of ``location``."""
    tell = loading or (lambda done, expected: None)
    reader = _Reader(location)
    plan: CopyPlan | None = None
    done = 0
    with ahead(reader.items, reader.cancel) as items:
        for item in items:
            if isinstance(item, CopyPlan):
                plan = item
                _create(connection, name, plan)
            else:
                assert plan is not None
                _insert(connection, name, plan, item)
                done += item.num_rows
            tell(done, plan.expected)


class _Reader:
    """Reads a plan, and then batches of rows; another thread may cancel it."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._cursor: Any = None

    def items(self) -> Generator[Any]:
        """The plan, and then Arrow record batches."""
        with _session(self._location) as cursor:
            self._cursor = cursor
            plan = _plan(cursor, self._location)
            yield replace(plan, expected=_expected(cursor, plan.statement))
            cursor.execute(plan.statement)
            with closing(cursor.fetch_record_batch()) as batches:
                yield from batches

    def cancel(self) -> None:
        """Tell the server to stop the statement."""
        with suppress(Exception):  # the server may be gone, or the statement finished
            if self._cursor is not None:
                self._cursor.adbc_cancel()


def tables_of(cursor: Any, with_partitions: bool) -> list[tuple[str, str]]:
    """Schema and name of each table and view; partitions only with ``with_partitions``."""
    cursor.execute(TABLES)
    return [
        (str(schema), str(name))
        for schema, name, is_partition in cursor.fetchall()
        if with_partitions or not is_partition
    ]


def resolve(cursor: Any, location: Location) -> tuple[str, str]:
    """Schema and name of the table at ``location``."""
    cursor.execute("SELECT unnest(current_schemas(false))::text")
    path = [str(schema) for (schema,) in cursor.fetchall()]
    return choose(tables_of(cursor, location.table is not None), location.table, location.database, path)


@contextmanager
def _session(location: Location) -> Iterator[Any]:
    """A cursor in a read-only transaction; its errors have one line and no password."""
    try:
        import pyarrow
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError("reading from PostgreSQL needs its driver: pip install 'countless[postgres]'") from None
    try:
        connection = dbapi.connect(with_timeout(location.database))
    except Error as error:
        raise connecting(str(error), location.database) from None
    with closing(connection):
        try:
            with closing(connection.cursor()) as cursor:
                for statement in BEGIN:
                    cursor.execute(statement)
                yield cursor
        except (Error, pyarrow.ArrowException, OSError) as error:
            raise reading(str(error), getattr(error, "sqlstate", None), location) from None


def with_timeout(url: str) -> str:
    """The URL with a timeout for connecting, unless it has one."""
    if "connect_timeout=" in url or "PGCONNECT_TIMEOUT" in os.environ:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={CONNECT_SECONDS}"


def _plan(cursor: Any, location: Location) -> CopyPlan:
    """Read no rows, to learn the columns, and then write the statement whose columns DuckDB understands."""
    if location.query is None:
        schema, table = resolve(cursor, location)
        rows = f"SELECT * FROM {quote_identifier(schema)}.{quote_identifier(table)}"
    else:
        rows = location.query
    cursor.execute(f"SELECT * FROM ({rows}\n) AS probed LIMIT 0")
    with closing(cursor.fetch_record_batch()) as probed:
        fields = list(probed.schema)
    if not fields:
        raise SourceError("the result has no columns: give a table or a query that has some")
    conversions = []
    for field in fields:
        metadata = field.metadata or {}
        conversions.append(type_conversion(metadata.get(TYPE, b"text").decode(), int(metadata.get(MODIFIER, b"-1"))))
    names = [f"c{index}" for index in range(len(fields))]
    sent = ", ".join(f"{how.sent.format(name)} AS {name}" for name, how in zip(names, conversions, strict=True))
    statement = f"SELECT {sent} FROM ({rows}\n) AS read ({', '.join(names)})"
    return CopyPlan(_distinct([field.name for field in fields]), tuple(conversions), statement)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names with numbers added, so that all differ without regard to case, as DuckDB requires.

    >>> _distinct(["a", "A", "b", "a_1"])
    ('a', 'A_1', 'b', 'a_1_1')
    """
    by_folded_name: dict[str, str] = {}
    for name in names:
        distinct_name, number = name, 0
        while distinct_name.casefold() in by_folded_name:
            number += 1
            distinct_name = f"{name}_{number}"
        by_folded_name[distinct_name.casefold()] = distinct_name
    return tuple(by_folded_name.values())


def _expected(cursor: Any, statement: str) -> int | None:
    """The number of rows that PostgreSQL's planner expects."""
    cursor.adbc_statement.set_options(**{COPY: "false"})  # COPY cannot run EXPLAIN
    cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}")
    row = cursor.fetchone()
    cursor.adbc_statement.set_options(**{COPY: "true"})
    return int(json.loads(row[0])[0]["Plan"]["Plan Rows"]) or None


def _create(connection: duckdb.DuckDBPyConnection, name: str, plan: CopyPlan) -> None:
    """Create the table for the rows of a plan."""
    columns = ", ".join(
        f"{quote_identifier(column)} {how.type}" for column, how in zip(plan.names, plan.conversions, strict=True)
    )
    connection.execute(f"CREATE TEMP TABLE {quote_identifier(name)} ({columns})")


def _insert(connection: duckdb.DuckDBPyConnection, name: str, plan: CopyPlan, batch: Any) -> None:
    """Insert a record batch into the table."""
    import pyarrow

    batch_name = new_name()
    values = ", ".join(how.converted.format(f"c{index}") for index, how in enumerate(plan.conversions))
    connection.register(batch_name, pyarrow.Table.from_batches([batch]))
    try:
        connection.execute(f"INSERT INTO {quote_identifier(name)} SELECT {values} FROM {batch_name}")
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise SourceError(f"DuckDB cannot store the values that PostgreSQL sent: {first_line(error)}") from None
    finally:
        connection.unregister(batch_name)
