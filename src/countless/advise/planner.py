"""The user's PostgreSQL planner: reads its row estimates, and creates statistics only on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from countless.data.columns.types import quote_identifier
from countless.data.sources.location import Location, is_postgres, locate, shown
from countless.data.sources.postgres import resolve, with_timeout
from countless.data.sources.postgres_errors import connecting, reading
from countless.errors import MissingExtraError, QueryError, SourceError
from countless.evaluation.baselines.postgres.dialect import translate

TABLE_KINDS = {"v": "a view", "f": "a foreign table"}  # they cannot have extended statistics
NOT_UNDERSTOOD = ("22", "42")  # SQLSTATE classes: values; names, types and syntax
TABLE_PROPERTIES = """
SELECT c.relkind::text,
       EXISTS (SELECT FROM pg_catalog.pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname),
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
       greatest(c.reltuples, 0)::float8,
       ARRAY(SELECT json_build_array(s.attname,
                                     max(s.n_distinct * CASE WHEN s.n_distinct < 0 THEN -c.reltuples ELSE 1 END))
             FROM pg_catalog.pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname GROUP BY s.attname)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""


@dataclass
class Trial:
    """A transaction that is rolled back unless ``keep`` is set."""

    keep: bool = False


class Planner:
    """A table of a PostgreSQL database, and its planner. Without ``writing``, the session is read-only."""

    def __init__(self, url: str, table: str | None, *, writing: bool = False) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("asking PostgreSQL needs its driver: pip install 'countless[postgres]'") from None
        location = locate(url, table)
        if location is None or not is_postgres(location.database) or location.query is not None:
            raise SourceError(f"{shown(url)} is not a PostgreSQL database: give a postgresql:// URL and --table")
        self._location: Location = location
        self._errors: type[Exception] = psycopg.Error
        try:
            self._connection = psycopg.connect(with_timeout(location.database), autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise connecting(str(error), location.database) from None
        try:
            self._read_table(writing)
        except BaseException:
            self.close()
            raise

    @property
    def table(self) -> str:
        """The table's name, qualified and quoted."""
        return f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"

    def expected(self, where: str) -> float | None:
        """The rows that the planner expects a clause of DuckDB's SQL to keep; None if PostgreSQL cannot read it."""
        try:
            statement = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self.table} WHERE {self.sql(where)}"
        except QueryError:
            return None
        with self._translated_errors():
            try:
                row: Any = self._connection.execute(statement.encode()).fetchone()
            except self._errors as error:
                if str(getattr(error, "sqlstate", None))[:2] in NOT_UNDERSTOOD:
                    return None
                raise
        return float(row[0][0]["Plan"]["Plan Rows"])

    def count(self, where: str) -> int:
        """The true number of rows that a clause keeps."""
        with self._translated_errors():
            statement = f"SELECT count(*) FROM {self.table} WHERE {self.sql(where)}"
            row: Any = self._connection.execute(statement.encode()).fetchone()
        return int(row[0])

    def sql(self, where: str) -> str:
        """A clause of DuckDB's SQL in PostgreSQL's."""
        return translate(where, self.columns, self.columns)

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A transaction, or a part of the current one. It is rolled back at the end unless ``keep`` is set."""
        import psycopg

        trial = Trial()
        with self._translated_errors(), self._connection.transaction():
            yield trial
            if not trial.keep:
                raise psycopg.Rollback

    def run(self, statement: str) -> None:
        """Run a statement that returns nothing."""
        with self._translated_errors():
            self._connection.execute(statement.encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_table(self, writing: bool) -> None:
        with self._translated_errors():
            self._connection.execute("SET client_encoding TO 'UTF8'")
            if not writing:
                self._connection.execute("SET default_transaction_read_only = on")
            self.schema, self.name = resolve(self._connection.cursor(), self._location)
            row = self._connection.execute(TABLE_PROPERTIES, [self.table]).fetchone()
        assert row is not None
        kind, self.analyzed, names, rows, distinct = row
        self.columns: Sequence[str] = tuple(names)
        self.rows, self.distinct = int(rows), {str(name): int(values) for name, values in distinct}
        if kind in TABLE_KINDS:
            message = f"{self.table} is {TABLE_KINDS[kind]}, of which PostgreSQL does not keep extended statistics"
            raise SourceError(f"{message}: name the table that it reads")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except self._errors as error:
            raise reading(str(error), getattr(error, "sqlstate", None), self._location) from None
