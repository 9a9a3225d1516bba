"""Row estimates of PostgreSQL's planner after ANALYZE, with or without extended statistics."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from countless.data.columns.types import TEXT, quote_identifier, stored_type
from countless.data.sources.source import Source, first_line
from countless.errors import DataError, ServerError, UnsupportedQueryError
from countless.estimator.answers.estimate import Estimate
from countless.evaluation.baselines.base import Baseline, answered
from countless.evaluation.baselines.postgres.dialect import internal_name, postgres_type, translate
from countless.evaluation.baselines.postgres.groups import related_groups
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer

CHUNK = 1 << 20
EXTENDED_TARGET = 1000
# Columns of one object of extended statistics. PostgreSQL allows eight, but computes the dependencies of all subsets:
# on Adult four columns took two seconds, eight forty. Four were also better up to p99, eight in the worst case.
LARGEST = 4


class LoadedTable:
    """A table's columns, loaded into a private PostgreSQL server for the planner baselines."""

    def __init__(
        self, table: Any, columns: Sequence[str] | None = None, tell: Callable[[str], None] | None = None
    ) -> None:
        self._source = Source.open(table)
        self.tell = tell or (lambda stage: None)
        available = self._source.columns()
        requested = None if columns is None else {name.casefold() for name in columns}
        selected = [
            (name, stored_type(kind)) for name, kind in available if requested is None or name.casefold() in requested
        ]
        self.columns = [(name, kind) for name, kind in selected if kind is not None]
        self.names = [name for name, _ in self.columns]
        self.tell("starting PostgreSQL")
        self.server = PrivatePostgresServer()
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def related(self, largest: int) -> list[tuple[int, ...]]:
        """Groups of columns that depend on each other."""
        return related_groups(self._source, self.names, largest)

    def close(self) -> None:
        """Stop the server."""
        self.server.close()

    def _load(self) -> None:
        import psycopg

        self.tell("loading the table into PostgreSQL")
        columns = ", ".join(
            f"{internal_name(index)} {postgres_type(kind)}" for index, (_, kind) in enumerate(self.columns)
        )
        with tempfile.TemporaryDirectory(prefix="countless-") as directory, self.server.connect() as connection:
            path = Path(directory) / "rows.csv"
            self._write(path)
            try:
                connection.execute(f"CREATE UNLOGGED TABLE loaded ({columns})".encode())
                with connection.cursor().copy(b"COPY loaded FROM STDIN (FORMAT csv)") as copy, path.open("rb") as rows:
                    while chunk := rows.read(CHUNK):
                        copy.write(chunk)
            except psycopg.Error as error:
                raise DataError(f"PostgreSQL cannot hold this table: {first_line(error)}") from None

    def _write(self, path: Path) -> None:
        """Write the columns as CSV. Strings are quoted, so that an empty string is not NULL."""
        values = ", ".join(
            f"CAST({quote_identifier(name)} AS VARCHAR) AS {internal_name(index)}"
            for index, (name, _) in enumerate(self.columns)
        )
        texts = ", ".join(internal_name(index) for index, (_, kind) in enumerate(self.columns) if kind == TEXT)
        quotes = f", FORCE_QUOTE ({texts})" if texts else ""
        target = str(path).replace("'", "''")
        self._source.run(
            f"COPY (SELECT {values} FROM {self._source.table}) TO '{target}' (FORMAT csv, HEADER false{quotes})"
        )


class Postgres(Baseline):
    """The number of rows that PostgreSQL's planner expects a filter to keep. It has no error bar.

    PostgreSQL has its default settings: ANALYZE samples 30,000 rows and stores up to 100 frequent values and 100
    histogram bounds for every column. The time of an answer is that of EXPLAIN, without the translation of the clause.
    """

    method = "postgres"

    def __init__(self, loaded: LoadedTable, target: int | None = None) -> None:
        self._loaded = loaded
        self._table = f"table_{self.method.replace('-', '_')}"
        loaded.tell(f"analyzing the table for {self.method} (a minute or so if it is large)")
        self._connection = loaded.server.connect()
        self._run(f"DROP TABLE IF EXISTS {self._table} CASCADE")
        self._run(f"CREATE UNLOGGED TABLE {self._table} AS TABLE loaded")
        if target is not None:
            self._run(f"SET default_statistics_target = {int(target)}")
        self._prepare()
        self._run(f"ANALYZE {self._table}")
        self.rows = self._number(f"SELECT count(*) FROM {self._table}")
        self.bytes = self._number(
            f"""SELECT (SELECT coalesce(sum(pg_column_size(s.*)), 0) FROM pg_statistic s
                        WHERE starelid = '{self._table}'::regclass)
                     + (SELECT coalesce(sum(pg_column_size(d.*)), 0)
                        FROM pg_statistic_ext_data d JOIN pg_statistic_ext e ON d.stxoid = e.oid
                        WHERE stxrelid = '{self._table}'::regclass)"""
        )

    def estimate(self, where: str) -> Estimate:
        """The number of rows that ``where`` keeps."""
        import psycopg

        condition = translate(where, self._loaded.names)
        statement = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self._table} WHERE {condition}".encode()
        started = time.perf_counter()
        try:
            row = self._connection.execute(statement).fetchone()
        except psycopg.Error as error:
            raise UnsupportedQueryError(f"PostgreSQL does not understand the clause: {first_line(error)}") from None
        assert row is not None
        share = min(1.0, float(row[0][0]["Plan"]["Plan Rows"]) / max(1, self.rows))
        return answered(self.method, where, self.rows, (share, 0.0, 1.0), started)

    def close(self) -> None:
        """Close the connection. The server stops with the loaded table."""
        self._connection.close()

    def _prepare(self) -> None:
        """A hook that runs before ANALYZE."""

    def _run(self, statement: str) -> None:
        import psycopg

        try:
            self._connection.execute(statement.encode())
        except psycopg.Error as error:
            self.close()
            raise ServerError(f"PostgreSQL failed: {first_line(error)}; is there room in /tmp and in memory?") from None

    def _number(self, query: str) -> int:
        row = self._connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


class PostgresExtended(Postgres):
    """PostgreSQL's planner, tuned by an expert who knows that the columns depend on each other.

    It has extended statistics of all three kinds (ndistinct, dependencies, mcv) on groups of up to four related
    columns, and a statistics target of 1,000 instead of 100: ANALYZE samples 300,000 rows and stores up to 1,000
    frequent values of each column, and 1,000 frequent combinations of each group.
    """

    method = "postgres-extended"

    def __init__(self, loaded: LoadedTable, target: int = EXTENDED_TARGET, largest: int = LARGEST) -> None:
        self._largest = largest
        super().__init__(loaded, target)

    def _prepare(self) -> None:
        self.groups = self._loaded.related(self._largest)
        for number, group in enumerate(self.groups):
            columns = ", ".join(internal_name(column_index) for column_index in group)
            kinds = "ndistinct, dependencies, mcv"
            self._run(f"CREATE STATISTICS {self._table}_{number} ({kinds}) ON {columns} FROM {self._table}")
