"""PostgreSQL as a source: one read, in one snapshot, into a DuckDB table."""

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
from countless.data.sources.postgres_types import Passage, passage
from countless.errors import MissingExtraError, SourceError

Loading: TypeAlias = Callable[[int, int | None], None]
"""Receives how many rows have been read, and how many there are, if PostgreSQL has an estimate."""

PATIENCE = 20  # seconds to connect, unless the URL or the environment say otherwise
TYPE, MODIFIER = b"POSTGRESQL:type", b"POSTGRESQL:typmod"  # the driver's notes about a column
COPY = "adbc.postgresql.use_copy"
# One snapshot of the rows, in which nothing can be written; and rows in the same order whenever it is read.
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
    """What is read: columns that PostgreSQL sends and DuckDB keeps, and the statement for them."""

    names: tuple[str, ...]
    passages: tuple[Passage, ...]
    statement: str
    expected: int | None = None


def load_table(
    location: Location, connection: duckdb.DuckDBPyConnection, name: str, loading: Loading | None = None
) -> None:
    """Make ``name`` a temporary table of ``connection`` with the rows that ``location`` says."""
    tell = loading or (lambda done, expected: None)
    read = _Read(location)
    plan: CopyPlan | None = None
    done = 0
    with ahead(read.items, read.cancel) as items:
        for item in items:
            if isinstance(item, CopyPlan):
                plan = item
                _create(connection, name, plan)
            else:
                assert plan is not None
                _insert(connection, name, plan, item)
                done += item.num_rows
            tell(done, plan.expected)


class _Read:
    """A plan, and then batches of rows; to be read in one thread and, if need be, canceled from another."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._cursor: Any = None

    def items(self) -> Generator[Any]:
        """The plan, and Arrow's record batches."""
        with _session(self._location) as cursor:
            self._cursor = cursor
            plan = _plan(cursor, self._location)
            yield replace(plan, expected=_expected(cursor, plan.statement))
            cursor.execute(plan.statement)
            with closing(cursor.fetch_record_batch()) as batches:
                yield from batches

    def cancel(self) -> None:
        """Tell the server that no more rows are wanted."""
        with suppress(Exception):  # it may be gone, or done
            if self._cursor is not None:
                self._cursor.adbc_cancel()


def tables_of(cursor: Any, everything: bool) -> list[tuple[str, str]]:
    """Schema and name of the tables and views that there are, partitions only with ``everything``."""
    cursor.execute(TABLES)
    return [(str(schema), str(name)) for schema, name, partition in cursor.fetchall() if everything or not partition]


def resolve(cursor: Any, location: Location) -> tuple[str, str]:
    """Schema and name of the table that ``location`` means."""
    cursor.execute("SELECT unnest(current_schemas(false))::text")
    path = [str(schema) for (schema,) in cursor.fetchall()]
    return choose(tables_of(cursor, location.table is not None), location.table, location.place, path)


@contextmanager
def _session(location: Location) -> Iterator[Any]:
    """A cursor in a transaction that only reads, whose errors have one line and no password."""
    try:
        import pyarrow
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError("reading from PostgreSQL needs its driver: pip install 'countless[postgres]'") from None
    try:
        connection = dbapi.connect(patient(location.place))
    except Error as error:
        raise connecting(str(error), location.place) from None
    with closing(connection):
        try:
            with closing(connection.cursor()) as cursor:
                for statement in BEGIN:
                    cursor.execute(statement)
                yield cursor
        except (Error, pyarrow.ArrowException, OSError) as error:
            raise reading(str(error), getattr(error, "sqlstate", None), location) from None


def patient(url: str) -> str:
    """The URL with a limit to the time of connecting, if there is none."""
    if "connect_timeout=" in url or "PGCONNECT_TIMEOUT" in os.environ:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={PATIENCE}"


def _plan(cursor: Any, location: Location) -> CopyPlan:
    """Ask for no rows, to learn the columns, and then write the statement whose columns DuckDB understands."""
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
    passages = []
    for field in fields:
        notes = field.metadata or {}
        passages.append(passage(notes.get(TYPE, b"text").decode(), int(notes.get(MODIFIER, b"-1"))))
    own = [f"c{place}" for place in range(len(fields))]
    sent = ", ".join(f"{way.sent.format(name)} AS {name}" for name, way in zip(own, passages, strict=True))
    statement = f"SELECT {sent} FROM ({rows}\n) AS read ({', '.join(own)})"
    return CopyPlan(_distinct([field.name for field in fields]), tuple(passages), statement)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names that DuckDB, to which case makes no difference, can tell apart.

    >>> _distinct(["a", "A", "b", "a_1"])
    ('a', 'A_1', 'b', 'a_1_1')
    """
    found: dict[str, str] = {}
    for name in names:
        own, number = name, 0
        while own.casefold() in found:
            number += 1
            own = f"{name}_{number}"
        found[own.casefold()] = own
    return tuple(found.values())


def _expected(cursor: Any, statement: str) -> int | None:
    """How many rows PostgreSQL's planner expects."""
    cursor.adbc_statement.set_options(**{COPY: "false"})  # of which EXPLAIN is no part
    cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}")
    row = cursor.fetchone()
    cursor.adbc_statement.set_options(**{COPY: "true"})
    return int(json.loads(row[0])[0]["Plan"]["Plan Rows"]) or None


def _create(connection: duckdb.DuckDBPyConnection, name: str, plan: CopyPlan) -> None:
    columns = ", ".join(
        f"{quote_identifier(column)} {way.kept}" for column, way in zip(plan.names, plan.passages, strict=True)
    )
    connection.execute(f"CREATE TEMP TABLE {quote_identifier(name)} ({columns})")


def _insert(connection: duckdb.DuckDBPyConnection, name: str, plan: CopyPlan, batch: Any) -> None:
    import pyarrow

    arrived = new_name()
    values = ", ".join(way.taken.format(f"c{index}") for index, way in enumerate(plan.passages))
    connection.register(arrived, pyarrow.Table.from_batches([batch]))
    try:
        connection.execute(f"INSERT INTO {quote_identifier(name)} SELECT {values} FROM {arrived}")
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise SourceError(f"DuckDB cannot keep what PostgreSQL sent: {first_line(error)}") from None
    finally:
        connection.unregister(arrived)
