"""Exact counts from tables in an isolated DuckDB."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from sqlglot import exp

from countless.cancellation import check_cancelled, interrupting
from countless.data.columns.schema import Schema
from countless.data.datasets import EMBEDDED
from countless.data.sources.file_formats import quote_path
from countless.data.sources.location import locate, shown
from countless.data.sources.regular_files import require_regular
from countless.data.sources.source import Source
from countless.errors import SourceError
from countless.query.compile import Compiler
from countless.query.derivation import derive
from countless.query.parse import parse
from countless.query.sql import written
from countless.query.uuids import with_canonical_uuids
from countless.serve.conditions import check_condition

ABSOLUTE = re.compile(r"""(^|[\s"'(=])(?:/[^/\s"']+)*/(?=[^/\s])""")  # the folders of a path


class CheckedTable:
    """A table that has the columns of a model. To be used by one thread at a time.

    One of PostgreSQL's is copied when it is opened, and counted as it was then.
    """

    def __init__(self, path: str, schema: Schema) -> None:
        if path in EMBEDDED and not Path(path).is_file():
            path = str(EMBEDDED[path]())
        place = str(Path(path).absolute()) if locate(path) is None else path
        self._source = derive(Source.open(place), schema.derived)
        known = {name.casefold() for name, _ in self._source.columns()}
        missing = [name for name in schema.names if name.casefold() not in known]
        if missing:
            raise SourceError(
                f'{shown(path)} has no column "{missing[0]}": give the table that the model was fitted to'
            )
        self._lock(place)
        self._compiler = Compiler(schema)
        self._schema = schema

    def count(self, where: str) -> int:
        """How many rows match ``where``; what a model would refuse is refused with the same error."""
        self._compiler.compile(where)
        condition = with_canonical_uuids(parse(where, self._schema), self._schema)
        check_condition(condition, where)
        sql = written(condition.transform(_unqualified))
        try:
            for file in self._files:
                require_regular(file)  # a pipe in its place would be waited for without end
            with interrupting(self._source.interrupt):
                return self._source.counts([sql])[0]
        except KeyboardInterrupt:
            check_cancelled()  # it was stopped because nobody waits
            raise
        except SourceError as error:
            raise self._explained(error) from None

    def _explained(self, error: SourceError) -> SourceError:
        """The error without the path, which is nobody's business, and with the reason if the table is gone."""
        gone = [file for file in self._files if not Path(file).exists()]
        if gone:
            return SourceError(
                f"the table is gone: {Path(gone[0]).name} was there when the service started; "
                "put it back, or start the service with another --table"
            )
        message = str(error)
        if "operations are disabled" in message:  # a link that now leads elsewhere is another file to DuckDB
            return SourceError("the table was replaced since the service started: start the service again")
        for file in self._files:
            message = message.replace(str(Path(file).parent) + os.sep, "")
        return SourceError(ABSOLUTE.sub(r"\1", message))

    def _lock(self, path: str) -> None:
        """Let what is asked reach no other file, nor the network, nor settings."""
        location = locate(path)
        files = [path, *glob.glob(path, recursive=True)] if location is None else []
        self._files = list(self._source.files) or ([] if location is None or location.is_postgres else [location.place])
        self._source.run(f"SET allowed_paths = [{', '.join(map(quote_path, files))}]")
        self._source.run("SET enable_external_access = false")
        self._source.run("SET lock_configuration = true")


def _unqualified(node: exp.Expr) -> exp.Expr:
    """A column without the name of its table, which may be any."""
    return exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node
