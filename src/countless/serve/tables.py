"""Exact counts from tables in an isolated DuckDB."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from sqlglot import TokenType, exp

from countless.cancellation import check_cancelled, interrupting
from countless.data.columns.schema import Schema
from countless.data.datasets import EMBEDDED
from countless.data.sources.csv_files import CsvFile, wrong_separator
from countless.data.sources.file_formats import TABLES, quote_path, with_default_options
from countless.data.sources.location import locate, shown
from countless.data.sources.regular_files import require_regular
from countless.data.sources.source import Source
from countless.errors import SourceError
from countless.estimator.model_table import require_types
from countless.query.compile import Compiler
from countless.query.parsing.parse import parse
from countless.query.parsing.sql import tokens_of, written
from countless.query.rewrites.derivation import derive
from countless.query.rewrites.uuids import with_canonical_uuids
from countless.serve.countable_conditions import check_condition

ABSOLUTE = re.compile(r"""(^|[\s"'(=])(?:/[^/\s"']+)*/(?=[^/\s])""")  # the folders of a path
QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


class CheckedTable:
    """A table that has the columns of a model. To be used by one thread at a time.

    One of PostgreSQL's is copied when it is opened, and counted as it was then.
    """

    def __init__(self, table: str | CsvFile, schema: Schema) -> None:
        path, csv = os.fspath(table), table.options if isinstance(table, CsvFile) else schema.csv
        if path in EMBEDDED and not Path(path).is_file():
            path = str(EMBEDDED[path]())
        location = str(Path(path).absolute()) if locate(path) is None else path
        self._source = derive(Source.open(with_default_options(location, csv)), schema.derived)
        names = {name.casefold() for name, _ in self._source.columns()}
        missing = [name for name in schema.names if name.casefold() not in names]
        if missing:
            hint = None if self._source.csv is None else wrong_separator(self._source)
            remedy = hint or "give the table that the model was fitted to"
            raise SourceError(f'{shown(path)} has no column "{missing[0]}": {remedy}')
        require_types(self._source, schema)
        self._lock(location)
        self._compiler = Compiler(schema)
        self._schema = schema

    def count(self, where: str) -> int:
        """How many rows match ``where``; a clause that a model would refuse gets the same error."""
        self._compiler.compile(where)
        condition = with_canonical_uuids(parse(where, self._schema), self._schema)
        check_condition(condition, where)
        sql = written(condition.transform(_unqualified))
        try:
            for file in self._files:
                require_regular(file)  # reading a pipe in its place would never end
            with interrupting(self._source.interrupt):
                return self._source.counts([sql])[0]
        except KeyboardInterrupt:
            check_cancelled()  # DuckDB was interrupted because the client has disconnected
            raise
        except SourceError as error:
            raise self._explained(error) from None

    def _explained(self, error: SourceError) -> SourceError:
        """The error without folders of this machine, and with the reason if the table is gone."""
        missing = [file for file in self._files if not Path(file).exists()]
        if missing:
            return SourceError(
                f"the table is gone: {Path(missing[0]).name} was there when the service started; "
                "put it back, or start the service with another --table"
            )
        message = str(error)
        if "operations are disabled" in message:  # a link that now leads elsewhere is another file to DuckDB
            return SourceError("the table was replaced since the service started: start the service again")
        for file in self._files:
            message = message.replace(str(Path(file).parent) + os.sep, "")
        return SourceError(ABSOLUTE.sub(r"\1", message))

    def _lock(self, path: str) -> None:
        """Keep conditions from reaching other files, the network and settings."""
        location = locate(path)
        names = [path] if location is None else _named_files(location.query or "") if not location.database else []
        files = [file for name in names for file in (name, *glob.glob(name, recursive=True))]
        self._files = list(self._source.files) or [file for file in files if Path(file).is_file()]
        if location is not None and location.database and not location.is_postgres:
            self._files = [location.database]
        self._source.run(f"SET allowed_paths = [{', '.join(map(quote_path, files))}]")
        self._source.run("SET enable_external_access = false")
        self._source.run("SET lock_configuration = true")
        if location is not None and not location.database:
            try:
                self._source.rows(f"SELECT 1 FROM {self._source.table} LIMIT 1")
            except SourceError:
                message = f"the service cannot read this query: {location.query}"
                raise SourceError(f"{message}; it may read files of this machine, each by its name in quotes") from None


def _named_files(query: str) -> list[str]:
    """The files and patterns that a query names in quotes, where values and names of columns may stand too."""
    words = [token.text for token in tokens_of(query) if token.token_type in QUOTED]
    return [word for word in words if word.lower().endswith(TABLES) or Path(word).is_file()]


def _unqualified(node: exp.Expr) -> exp.Expr:
    """A column without the name of its table, which a clause may choose freely."""
    return exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node
