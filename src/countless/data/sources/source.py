"""A source of rows: files, databases, data frames or DuckDB relations."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from numpy.typing import NDArray

from countless.data.columns.derived import Derived, computable, select_derived
from countless.data.columns.structs import flatten_structs, is_struct
from countless.data.columns.types import TEXT, quote_identifier, stored_type
from countless.data.datasets import EMBEDDED, Advice, data_set_names, installed_data_set, is_data_set
from countless.data.progress import Meter, Watch
from countless.data.sources.arrow_batches import BATCH_ROWS, UNREADABLE, Vector, batches
from countless.data.sources.connection import Limit
from countless.data.sources.connection import connect as connect
from countless.data.sources.connection import first_line as first_line
from countless.data.sources.connection import new_name as new_name
from countless.data.sources.csv_files import CsvFile, csv_warnings
from countless.data.sources.duckdb_file import open_database, open_query
from countless.data.sources.file_formats import TABLES, files_of, quote_path, scan_file
from countless.data.sources.location import Location, locate, shown
from countless.data.sources.missing_files import missing_file
from countless.data.sources.postgres import Loading, load_table
from countless.errors import OptionError, SourceError

Result = TypeVar("Result")


class Source:
    """A table that can be queried in SQL under the name :attr:`table`. Only tables of PostgreSQL are copied first.

    For a known data set, :attr:`advice` says how to fit it, and :attr:`notice` what is unusual about its file. If
    :attr:`watch` is set, it receives the progress of each statement. Fields of structs are columns, such as
    ``address.city``; :attr:`left_structs` has the structs that were not flattened, and why.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT range AS n FROM range(3)"))
    >>> source.rows(f"SELECT sum(n) FROM {source.table}")
    [(3,)]
    """

    def __init__(
        self,
        name: str,
        connection: duckdb.DuckDBPyConnection | None,
        relation: duckdb.DuckDBPyRelation | None,
        advice: Advice | None = None,
        notice: str | None = None,
        files: tuple[str, ...] = (),
        left_structs: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.files = files
        self.left_structs = left_structs or {}
        self.uuids: frozenset[str] = frozenset()  # names of columns of this type, which are read as strings
        self.derived: tuple[Derived, ...] = ()  # columns that are computed from other columns
        self.csv: Mapping[str, Any] | None = None  # options of a CSV file; None for other sources
        self.watch: Meter | None = None
        self.advice = advice or Advice()
        self.notice = notice
        self.table = quote_identifier(name)
        self._connection = connection
        self._relation = relation

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        table: str | None = None,
        query: str | None = None,
        loading: Loading | None = None,
        limit: Limit | None = None,
        flatten: int | None = None,
    ) -> Source:
        """Open a table to be read.

        Args:
            source: A path, glob or :class:`CsvFile`; a query that names files; a DuckDB file or ``postgresql://`` URL;
                a pandas, polars or Arrow table; a DuckDB relation; or the name of a data set, unless there is a file
                of this name. A source that is open already is returned as it is.
            table: The table of a database to read. It may also follow the database after ``::``. The only table of a
                database needs no name.
            query: A query to read instead of a table.
            loading: Receives the number of rows read so far from PostgreSQL, whose rows are copied into DuckDB.
            limit: The limits of DuckDB; a relation keeps its own settings.
            flatten: How many levels of structs become columns; by default all.
        """
        opened = cls._open(source, table, query, loading, limit)
        if limit is not None and opened._connection is not None:
            limit.apply(opened._connection)
        columns = opened.columns()
        if opened is not source and any(is_struct(kind) for _, kind in columns):
            opened = opened._flattened(flatten)
            columns = opened.columns()
        return opened._in_stored_types(columns)

    @classmethod
    def _open(
        cls, source: Any, table: str | None, query: str | None, loading: Loading | None, limit: Limit | None
    ) -> Source:
        """The source as it is: with structs, and in the types of its file."""
        if isinstance(source, str | os.PathLike):
            location = locate(os.fspath(source), table, query)
            if location is not None and isinstance(source, CsvFile):
                raise OptionError(f"{{csv}} is for CSV files, and {shown(source)} is not one")
            if location is not None:
                return cls._open_location(location, loading, limit)
        elif table is not None or query is not None:
            raise SourceError("a table or a query needs a database: give its URL or the path of its file")
        if isinstance(source, Source):
            return source
        if isinstance(source, str) and not Path(source).is_file():
            if source in EMBEDDED:
                source = EMBEDDED[source]()
            elif (data_set := installed_data_set(source)) is not None:
                return data_set.open()
        name = new_name()
        if isinstance(source, duckdb.DuckDBPyRelation):
            return cls(name, None, source)
        if isinstance(source, str | os.PathLike):
            path, csv = os.fspath(source), source.options if isinstance(source, CsvFile) else None
            scan = _scan(path, csv)
            opened = cls(name, _view(name, f"SELECT * FROM {scan}", path), None, files=files_of(path))
            opened.csv = (csv or {}) if scan.startswith("read_csv(") else None
            return opened
        connection = connect()
        try:
            connection.register(name, source)
        except (duckdb.Error, TypeError, RuntimeError):
            raise SourceError(
                f"cannot read an object of type {type(source).__name__} as a table: "
                "give a path, a pandas, polars or Arrow table, or a DuckDB relation"
            ) from None
        return cls(name, connection, None)

    @classmethod
    def _open_location(cls, location: Location, loading: Loading | None, limit: Limit | None) -> Source:
        """A table or query of a database, or a query that names files."""
        name = new_name()
        if location.is_postgres:
            connection = connect()
            if limit is not None:
                limit.apply(connection)
            else:  # DuckDB makes the folder when it needs one, and removes it
                connection.execute(f"SET temp_directory = {quote_path(str(Path(tempfile.gettempdir()) / name))}")
            load_table(location, connection, name, loading)
            return cls(name, connection, None)
        return cls(name, open_database(location, name) if location.database else open_query(location, name), None)

    @classmethod
    def of_select(cls, select: str, file: Path, advice: Advice | None = None, notice: str | None = None) -> Source:
        """The rows that ``select`` reads from one file; ``notice`` is shown to the user."""
        name = new_name()
        return cls(name, _view(name, select, str(file)), None, advice, notice, (str(file),))

    def _flattened(self, depth: int | None) -> Source:
        """The same rows with columns in place of structs."""
        with _translated_errors():
            relation = self._as_relation(f"SELECT * FROM {self.table}")
            flattened = flatten_structs(list(zip(relation.columns, relation.types, strict=True)), depth)
        return self._view_of(flattened.select(self.table), flattened.reasons)

    def _in_stored_types(self, columns: Sequence[tuple[str, str]]) -> Source:
        """The same rows in the types that a model stores; ``columns`` are the names and types of all columns.

        A model stores a UUID as a string. So that a condition means the same for the table and the model, it is a
        string in both: a UUID has no LIKE, and cannot be compared with a part of one.
        """
        types = [(quote_identifier(name), kind, stored_type(kind)) for name, kind in columns]
        casts = [f"CAST({name} AS {stored}) AS {name}" for name, kind, stored in types if stored not in (None, kind)]
        if not casts:
            return self
        view = self._view_of(f"SELECT * REPLACE ({', '.join(casts)}) FROM {self.table}", self.left_structs)
        view.uuids = frozenset(name for name, kind in columns if kind == "UUID")
        return view

    def with_derived(self, derived: Sequence[Derived]) -> Source:
        """The same rows with those ``derived`` columns that are not there yet and can be computed."""
        added = computable(derived, [name for name, _ in self.columns()]) if derived else ()
        if not added:
            return self
        with _translated_errors():
            view = self._view_of(select_derived(self.table, added), self.left_structs)
        typed = view._in_stored_types(view.columns())
        typed.uuids |= self.uuids
        typed.derived = (*self.derived, *added)
        return typed

    def _view_of(self, select: str, left_structs: Mapping[str, str]) -> Source:
        """A source that is a view: the result of ``select``, a SELECT that names :attr:`table`."""
        name, connection, relation = new_name(), self._connection, None
        if connection is not None:
            self.run(f"CREATE TEMP VIEW {quote_identifier(name)} AS {select}")
        else:
            relation = self._as_relation(select)
        view = Source(name, connection, relation, self.advice, self.notice, self.files, left_structs)
        view.csv = self.csv
        return view

    def _as_relation(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A statement that may name :attr:`table`, not run yet."""
        if self._connection is not None:
            relation: duckdb.DuckDBPyRelation | None = self._connection.sql(sql)
        else:
            relation = None if self._relation is None else self._relation.query(self.name, sql)
        assert relation is not None
        return relation

    def run(self, sql: str) -> None:
        """Run a statement that returns nothing."""
        self._query(sql, lambda result: None)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The result rows of a statement that may name :attr:`table`."""
        return self._query(sql, lambda result: result.fetchall())

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        """The result of a statement as a NumPy array per column, which is a masked one if there are NULLs."""
        return self._query(sql, lambda result: result.fetchnumpy())

    def batches(self, sql: str, rows: int = BATCH_ROWS[-1]) -> Generator[list[Vector]]:
        """The result of a statement in batches of ``rows`` rows. Run no other statement of the source meanwhile."""
        with _translated_errors():
            yield from batches(self._as_relation(sql), rows)

    def interrupt(self) -> None:
        """Stop the statement that another thread runs, which gets a KeyboardInterrupt."""
        if self._connection is not None:
            self._connection.interrupt()

    def count(self) -> int:
        """The number of rows."""
        return int(self.rows(f"SELECT count(*) FROM {self.table}")[0][0])

    def sampled(self, size: int, seed: int) -> Source:
        """A random sample of ``size`` rows, in a temporary table."""
        return self.selected(self._sample(size, seed))

    @contextmanager
    def sample_table(self, size: int, seed: int, columns: Sequence[str], of_rows: int) -> Iterator[Source]:
        """A random sample of ``size`` of the table's ``of_rows`` rows, of some ``columns``, for a ``with`` block.

        It is a temporary table, because a relation may return its rows in another order each time.
        """
        table = quote_identifier(new_name())
        # Only rows with a small hash are sorted. The limit nearly always leaves at least ``size`` of them.
        share = (size + 6 * math.sqrt(size) + 10) / of_rows
        self.run(f"CREATE TEMP TABLE {table} AS {self._sample(size, seed, columns, share)}")
        if self.rows(f"SELECT count(*) FROM {table}")[0][0] < min(size, of_rows):
            self.run(f"CREATE OR REPLACE TEMP TABLE {table} AS {self._sample(size, seed, columns)}")
        try:
            yield self._view_of(f"SELECT * FROM {table}", self.left_structs)
        finally:
            self.run(f"DROP TABLE {table}")

    def _sample(self, size: int, seed: int, columns: Sequence[str] = (), share: float = 1.0) -> str:
        """SQL for ``size`` random rows, of all ``columns`` if none are named, out of a random ``share`` of all rows."""
        row_number, order = self._shuffle(seed)
        rows = self._random_rows(share, seed, columns)
        return f"SELECT * EXCLUDE ({row_number}) FROM ({rows}) ORDER BY {order} LIMIT {int(size)}"

    def random_share(self, share: float, seed: int, column: str) -> str:
        """SQL for one column of a random ``share`` of the rows, in the order of the rows."""
        return f"SELECT {quote_identifier(column)} FROM ({self._random_rows(share, seed, [column])})"

    def _random_rows(self, share: float, seed: int, columns: Sequence[str]) -> str:
        """SQL for a random share of the rows, with their row numbers."""
        row_number, order = self._shuffle(seed)
        selected = ", ".join(map(quote_identifier, columns)) or "*"
        numbered = f"SELECT {selected}, row_number() OVER () AS {row_number} FROM {self.table}"
        where = f"WHERE {order} < {int(share * 2**64)}::UBIGINT" if share < 1 else ""
        return f"SELECT * FROM ({numbered}) {where}"

    def _shuffle(self, seed: int) -> tuple[str, str]:
        """The name of the column of row numbers, and SQL for a row's sort key in a random order."""
        row_number = quote_identifier(f"{self.name}_place")
        # The hash only shuffles, so rows with equal hashes do no harm.
        return row_number, f"hash({row_number} + {int(seed) * 1_000_003})"

    def selected(self, select: str) -> Source:
        """The result of a SELECT that may name :attr:`table`, in a temporary table."""
        name = new_name()
        if self._connection is None:
            assert self._relation is not None
            return Source(name, None, self._relation.query(self.name, select), self.advice, self.notice)
        self.run(f"CREATE TEMP TABLE {quote_identifier(name)} AS {select}")
        return Source(name, self._connection, None, self.advice, self.notice)

    def _query(self, sql: str, fetch: Callable[[Any], Result]) -> Result:
        """Run a statement and return what ``fetch`` makes of its result."""
        with _translated_errors(), self._watched():
            if self._connection is not None:
                return fetch(self._connection.execute(sql))
            assert self._relation is not None
            return fetch(self._relation.query(self.name, sql))

    def _watched(self) -> AbstractContextManager[None]:
        """A block during which :attr:`watch` receives DuckDB's progress."""
        connection = self._connection
        if self.watch is None or connection is None:
            return nullcontext()
        return Watch(lambda: float(connection.query_progress()), self.watch)

    def warnings(self) -> list[str]:
        """Signs that a CSV file was read with the wrong options, each with a remedy."""
        return [] if self.csv is None else csv_warnings(self)

    def fingerprint(self) -> str:
        """The identity of this table: the names, sizes and times of its files, or else sums of hashes over all rows.

        It only decides whether the codes of an earlier fit can be used. DuckDB's hash gives some strings the same
        number. So each string is hashed twice, once with a letter before it, which changes the hashes.
        """
        if self.files:
            stats = [(file, Path(file).stat()) for file in self.files]
            return repr(
                [*((file, stat.st_size, stat.st_mtime_ns) for file, stat in stats), self.csv or None, *self.derived]
            )
        columns = self.columns()
        plain = [quote_identifier(name) for name, _ in columns]
        prefixed = [f"'x' || {name}" if kind == TEXT else name for name, (_, kind) in zip(plain, columns, strict=True)]
        sums = ", ".join(f"sum(hash({', '.join(values)}))::VARCHAR" for values in (plain, prefixed))
        return repr([columns, self.rows(f"SELECT count(*), {sums} FROM {self.table}")])

    def columns(self) -> list[tuple[str, str]]:
        """Name and DuckDB type of every column."""
        return [(str(name), str(kind)) for name, kind, *_ in self.rows(f"DESCRIBE SELECT * FROM {self.table}")]

    def counts(self, clauses: Sequence[str], batch: int = 64) -> list[int]:
        """The exact number of rows that match each WHERE clause; one scan counts ``batch`` clauses."""
        counts: list[int] = []
        for first in range(0, len(clauses), batch):
            # CASE stops at the first part of a conjunction that fails; FILTER would evaluate every part for every row.
            cases = ", ".join(f"count(CASE WHEN {clause}\nTHEN 1 END)" for clause in clauses[first : first + batch])
            counts.extend(int(count) for count in self.rows(f"SELECT {cases} FROM {self.table}")[0])
        return counts


def require_file(source: str | CsvFile) -> None:
    """Raise an error if ``source`` is a file that does not exist or holds no table; other sources pass."""
    path = os.fspath(source)
    if not is_data_set(path) and locate(path) is None:
        _scan(path, source.options if isinstance(source, CsvFile) else None)


def _scan(path: str, csv: Mapping[str, Any] | None) -> str:
    """DuckDB's table function for a file."""
    if re.fullmatch(r"[\w-]+", path) and not Path(path).exists():
        raise missing_file(path, TABLES, f" (data sets that go by a name are {', '.join(data_set_names())})")
    return scan_file(path, csv)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate DuckDB's errors in this block to those of this package."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        raise SourceError(
            "DuckDB has too little memory for this table: allow more memory, or fit fewer columns"
        ) from None
    except duckdb.Error as error:
        raise SourceError(UNREADABLE + first_line(error)) from None
    except RuntimeError as error:  # DuckDB raises it if Ctrl-C comes between two steps of a query
        if "interrupted" not in str(error):
            raise
        raise KeyboardInterrupt from None


def _view(name: str, select: str, path: str) -> duckdb.DuckDBPyConnection:
    """A connection in which ``name`` is a view of ``select``, which reads ``path``."""
    connection = connect()
    try:
        connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS {select}")
    except duckdb.Error as error:
        raise SourceError(f"cannot read {path}: {first_line(error)}") from None
    return connection
