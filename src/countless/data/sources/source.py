"""A source of rows: files, databases, data frames or DuckDB relations."""

from __future__ import annotations

import glob
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
from countless.data.datasets import EMBEDDED, Advice, brought_data_set, data_set_names, is_data_set
from countless.data.progress import Meter, Watch
from countless.data.sources.arrow_batches import BATCH_ROWS, UNREADABLE, Vector, batches
from countless.data.sources.connection import Limit
from countless.data.sources.connection import connect as connect
from countless.data.sources.connection import first_line as first_line
from countless.data.sources.connection import new_name as new_name
from countless.data.sources.csv_files import CsvFile, csv_warnings
from countless.data.sources.duckdb_file import open_database, open_query
from countless.data.sources.file_formats import TABLES, quote_path, scan_file
from countless.data.sources.location import Location, locate, shown
from countless.data.sources.missing_files import missing_file
from countless.data.sources.postgres import Loading, load_table
from countless.errors import OptionError, SourceError

Result = TypeVar("Result")


class Source:
    """A table that can be queried in SQL under the name :attr:`table`, without being copied, but from PostgreSQL.

    Of a table that is known, :attr:`advice` says how to fit it, and :attr:`notice` what is unusual about the file.
    While there is a :attr:`watch`, it receives the progress of each statement. Fields of structs are columns,
    such as ``address.city``; :attr:`left_structs` has the structs that were left as they are, and why.

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
        self.uuids: frozenset[str] = frozenset()  # columns of this type, which are read as strings
        self.derived: tuple[Derived, ...] = ()  # columns that are computed from others
        self.csv: Mapping[str, Any] | None = None  # options of a CSV file, if it is one
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
        """A path or glob, a database, a pandas, polars or Arrow table, a DuckDB relation, or the name of a data set.

        A path may be a :class:`CsvFile`. A query in its place reads the files that it names. A database is a DuckDB
        file or a ``postgresql://`` URL. Of it ``table`` or ``query`` is read, which may also follow the database after
        ``::``; its only table needs no name. What PostgreSQL holds is copied into a table of DuckDB's, and ``loading``
        receives the number of rows so far. A file is preferred to a data set of the same name. DuckDB keeps to
        ``limit``; a relation's own settings are left as they are. ``flatten`` is how many levels of structs become
        columns, by default all; a source that is open already stays as it is.
        """
        found = cls._opened(source, table, query, loading, limit)
        if limit is not None and found._connection is not None:
            limit.keep(found._connection)
        columns = found.columns()
        if found is not source and any(is_struct(kind) for _, kind in columns):
            found = found._flattened(flatten)
            columns = found.columns()
        return found._in_stored_types(columns)

    @classmethod
    def _opened(
        cls, source: Any, table: str | None, query: str | None, loading: Loading | None, limit: Limit | None
    ) -> Source:
        if isinstance(source, str | os.PathLike):
            location = locate(os.fspath(source), table, query)
            if location is not None and isinstance(source, CsvFile):
                raise OptionError(f"{{csv}} is for CSV files, and {shown(source)} is not one")
            if location is not None:
                return cls._located(location, loading, limit)
        elif table is not None or query is not None:
            raise SourceError("a table or a query needs a database: give its URL or the path of its file")
        if isinstance(source, Source):
            return source
        if isinstance(source, str) and not Path(source).is_file():
            if source in EMBEDDED:
                source = EMBEDDED[source]()
            elif (brought := brought_data_set(source)) is not None:
                return brought.open()
        name = new_name()
        if isinstance(source, duckdb.DuckDBPyRelation):
            return cls(name, None, source)
        if isinstance(source, str | os.PathLike):
            path, csv = os.fspath(source), source.options if isinstance(source, CsvFile) else None
            scan = _scanned(path, csv)
            found = cls(name, _viewed(name, f"SELECT * FROM {scan}", path), None, files=files_of(path))
            found.csv = (csv or {}) if scan.startswith("read_csv(") else None
            return found
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
    def _located(cls, location: Location, loading: Loading | None, limit: Limit | None) -> Source:
        name = new_name()
        if location.is_postgres:
            connection = connect()
            if limit is not None:
                limit.keep(connection)
            else:  # DuckDB makes the folder if it needs one, and removes it
                connection.execute(f"SET temp_directory = {quote_path(str(Path(tempfile.gettempdir()) / name))}")
            load_table(location, connection, name, loading)
            return cls(name, connection, None)
        return cls(name, open_database(location, name) if location.place else open_query(location, name), None)

    @classmethod
    def of_select(cls, select: str, file: Path, advice: Advice | None = None, notice: str | None = None) -> Source:
        """What a SELECT reads of one file; ``notice`` is shown to the user."""
        name = new_name()
        return cls(name, _viewed(name, select, str(file)), None, advice, notice, (str(file),))

    def _flattened(self, depth: int | None) -> Source:
        """The same rows with columns in place of structs."""
        with _told_errors():
            whole = self._as_relation(f"SELECT * FROM {self.table}")
            found = flatten_structs(list(zip(whole.columns, whole.types, strict=True)), depth)
        return self._viewed_as(found.select(self.table), found.reasons)

    def _in_stored_types(self, columns: Sequence[tuple[str, str]]) -> Source:
        """The same rows, each of ``columns``, all there are, in the type that a model stores it in.

        A model knows a UUID as a string. To ask the table and the model the same question, ask both about
        a string: LIKE has no meaning for a UUID, and a UUID does not compare with a part of one.
        """
        types = [(quote_identifier(name), kind, stored_type(kind)) for name, kind in columns]
        casts = [f"CAST({name} AS {stored}) AS {name}" for name, kind, stored in types if stored not in (None, kind)]
        if not casts:
            return self
        found = self._viewed_as(f"SELECT * REPLACE ({', '.join(casts)}) FROM {self.table}", self.left_structs)
        found.uuids = frozenset(name for name, kind in columns if kind == "UUID")
        return found

    def with_derived(self, derived: Sequence[Derived]) -> Source:
        """The same rows with ``derived`` columns, but for those that are there, or need a column that is not there."""
        lacking = computable(derived, [name for name, _ in self.columns()]) if derived else ()
        if not lacking:
            return self
        with _told_errors():
            found = self._viewed_as(select_derived(self.table, lacking), self.left_structs)
        typed = found._in_stored_types(found.columns())
        typed.uuids |= self.uuids
        typed.derived = (*self.derived, *lacking)
        return typed

    def _viewed_as(self, select: str, left_structs: Mapping[str, str]) -> Source:
        """A view of the same table: what a SELECT in which it is named gives."""
        name, connection, relation = new_name(), self._connection, None
        if connection is not None:
            self.run(f"CREATE TEMP VIEW {quote_identifier(name)} AS {select}")
        else:
            relation = self._as_relation(select)
        found = Source(name, connection, relation, self.advice, self.notice, self.files, left_structs)
        found.csv = self.csv
        return found

    def _as_relation(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A statement in which :attr:`table` may be named, not yet run."""
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
        """The rows of a statement in which :attr:`table` may be named."""
        return self._query(sql, lambda result: result.fetchall())

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        """The same by columns, each a NumPy array (a masked one where there are NULLs)."""
        return self._query(sql, lambda result: result.fetchnumpy())

    def batches(self, sql: str, rows: int = BATCH_ROWS[-1]) -> Generator[list[Vector]]:
        """The same by columns, this many rows at a time. Nothing else may be asked of the source in the meantime."""

        with _told_errors():
            yield from batches(self._as_relation(sql), rows)

    def interrupt(self) -> None:
        """Stop what another thread asks of the source, which gets a KeyboardInterrupt."""
        if self._connection is not None:
            self._connection.interrupt()

    def count(self) -> int:
        """The number of rows."""
        return int(self.rows(f"SELECT count(*) FROM {self.table}")[0][0])

    def sampled(self, size: int, seed: int) -> Source:
        """A random sample of this many rows, kept in a table of its own."""
        return self._kept(new_name(), self._sample(size, seed))

    @contextmanager
    def sample_table(self, size: int, seed: int, columns: Sequence[str], of_rows: int) -> Iterator[Source]:
        """A random sample of ``size`` of the table's ``of_rows`` rows, of some ``columns``, while it is needed.

        It is drawn once: a relation may give its rows in another order every time it is asked.
        """
        table = quote_identifier(new_name())
        # Only rows whose hash is small are sorted. Six deviations more than needed are expected to be among them.
        share = (size + 6 * math.sqrt(size) + 10) / of_rows
        self.run(f"CREATE TEMP TABLE {table} AS {self._sample(size, seed, columns, share)}")
        if self.rows(f"SELECT count(*) FROM {table}")[0][0] < min(size, of_rows):
            self.run(f"CREATE OR REPLACE TEMP TABLE {table} AS {self._sample(size, seed, columns)}")
        try:
            yield self._viewed_as(f"SELECT * FROM {table}", self.left_structs)
        finally:
            self.run(f"DROP TABLE {table}")

    def _sample(self, size: int, seed: int, columns: Sequence[str] = (), share: float = 1.0) -> str:
        """SQL for ``size`` random rows, of all columns unless some are named; a ``share`` of all rows is sorted."""
        place, order = self._shuffle(seed)
        rows = self._random_rows(share, seed, columns)
        return f"SELECT * EXCLUDE ({place}) FROM ({rows}) ORDER BY {order} LIMIT {int(size)}"

    def random_share(self, share: float, seed: int, column: str) -> str:
        """SQL for one column of a random ``share`` of the rows, in their order."""
        return f"SELECT {quote_identifier(column)} FROM ({self._random_rows(share, seed, [column])})"

    def _random_rows(self, share: float, seed: int, columns: Sequence[str]) -> str:
        """SQL for a random share of the rows with their numbers."""
        place, order = self._shuffle(seed)
        selected = ", ".join(map(quote_identifier, columns)) or "*"
        numbered = f"SELECT {selected}, row_number() OVER () AS {place} FROM {self.table}"
        some = f"WHERE {order} < {int(share * 2**64)}::UBIGINT" if share < 1 else ""
        return f"SELECT * FROM ({numbered}) {some}"

    def _shuffle(self, seed: int) -> tuple[str, str]:
        """The column of a row's number, and SQL for its place in a random order."""
        place = quote_identifier(f"{self.name}_place")
        # The hash only shuffles: rows with the same one are equally good.
        return place, f"hash({place} + {int(seed) * 1_000_003})"

    def selected(self, select: str) -> Source:
        """What a SELECT in which :attr:`table` may be named gives, kept in a table of its own."""
        return self._kept(new_name(), select)

    def _kept(self, name: str, select: str) -> Source:
        if self._connection is None:
            assert self._relation is not None
            return Source(name, None, self._relation.query(self.name, select), self.advice, self.notice)
        self.run(f"CREATE TEMP TABLE {quote_identifier(name)} AS {select}")
        return Source(name, self._connection, None, self.advice, self.notice)

    def _query(self, sql: str, fetch: Callable[[Any], Result]) -> Result:
        with _told_errors(), self._watched():
            if self._connection is not None:
                return fetch(self._connection.execute(sql))
            assert self._relation is not None
            return fetch(self._relation.query(self.name, sql))

    def _watched(self) -> AbstractContextManager[None]:
        connection = self._connection
        if self.watch is None or connection is None:
            return nullcontext()
        return Watch(lambda: float(connection.query_progress()), self.watch)

    def warnings(self) -> list[str]:
        """What looks wrong about the table, with a remedy: a CSV file that was probably read in a wrong way."""
        return [] if self.csv is None else csv_warnings(self)

    def fingerprint(self) -> str:
        """What identifies this table: of files their names, sizes and times, else sums over all rows.

        DuckDB's hash gives some strings the same number, so each is hashed twice: with a letter before it, too, which
        tells those apart. It only decides whether codes of an earlier fit can be used.
        """
        if self.files:
            facts = [(file, Path(file).stat()) for file in self.files]
            return repr(
                [*((file, fact.st_size, fact.st_mtime_ns) for file, fact in facts), self.csv or None, *self.derived]
            )
        columns = self.columns()
        plain = [quote_identifier(name) for name, _ in columns]
        begun = [f"'x' || {name}" if kind == TEXT else name for name, (_, kind) in zip(plain, columns, strict=True)]
        sums = ", ".join(f"sum(hash({', '.join(values)}))::VARCHAR" for values in (plain, begun))
        return repr([columns, self.rows(f"SELECT count(*), {sums} FROM {self.table}")])

    def columns(self) -> list[tuple[str, str]]:
        """Name and DuckDB type of every column."""
        return [(str(name), str(kind)) for name, kind, *_ in self.rows(f"DESCRIBE SELECT * FROM {self.table}")]

    def counts(self, clauses: Sequence[str], batch: int = 64) -> list[int]:
        """How many rows match each WHERE clause, exactly: a scan answers ``batch`` of them."""
        counts: list[int] = []
        for first in range(0, len(clauses), batch):
            # CASE stops at the first part of a conjunction that fails; FILTER would judge every part of every row.
            cases = ", ".join(f"count(CASE WHEN {clause}\nTHEN 1 END)" for clause in clauses[first : first + batch])
            counts.extend(int(count) for count in self.rows(f"SELECT {cases} FROM {self.table}")[0])
        return counts


def require_file(source: str | CsvFile) -> None:
    """Say at once that there is no such file, or that it is no table; of what is no file, nothing."""
    path = os.fspath(source)
    if not is_data_set(path) and locate(path) is None:
        _scanned(path, source.options if isinstance(source, CsvFile) else None)


def _scanned(path: str, csv: Mapping[str, Any] | None) -> str:
    """DuckDB's table function for a file."""
    if re.fullmatch(r"[\w-]+", path) and not Path(path).exists():
        raise missing_file(path, TABLES, f" (data sets that go by a name are {', '.join(data_set_names())})")
    return scan_file(path, csv)


@contextmanager
def _told_errors() -> Iterator[None]:
    """DuckDB's errors as ours."""
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
    except RuntimeError as error:  # what DuckDB raises if Ctrl-C comes between two steps of a query
        if "interrupted" not in str(error):
            raise
        raise KeyboardInterrupt from None


def files_of(path: str) -> tuple[str, ...]:
    """The files that ``path`` names, in full: a pattern names several, in order."""
    found = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    return tuple(str(Path(file).resolve()) for file in found)


def _viewed(name: str, select: str, path: str) -> duckdb.DuckDBPyConnection:
    """A connection in which ``name`` is a view of what is selected from ``path``."""
    connection = connect()
    try:
        connection.execute(f"CREATE TEMP VIEW {quote_identifier(name)} AS {select}")
    except duckdb.Error as error:
        raise SourceError(f"cannot read {path}: {first_line(error)}") from None
    return connection
