"""Finds the column because of which DuckDB cannot read a table, and names it in the error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from countless.data.columns.names import exclude_option
from countless.data.encoding.encoder import Encoder
from countless.data.encoding.table import read_schema
from countless.data.sources.arrow_batches import UNREADABLE
from countless.data.sources.source import Source
from countless.errors import DataError, SourceError
from countless.options import EncodeOptions

# DuckDB's messages about values begin so. Others are about files, memory or permissions.
VALUE_ERROR = re.compile(
    r"(?:Conversion|Out of Range|Invalid Input|Not implemented|Mismatch Type|INTERNAL|FATAL) Error"
)
FILE_ERROR = "not utf-8"


class ColumnBlame:
    """Around a block that reads a table: makes an error of one column's values a DataError that names the column.

    To find the column, each is read alone, from the table that ``reopen`` opens again, because an internal error of
    DuckDB closes the connection.
    """

    def __init__(self, reopen: Callable[[], Source], options: EncodeOptions) -> None:
        self._reopen, self._options = reopen, options

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, SourceError) or not VALUE_ERROR.search(str(error)) or FILE_ERROR in str(error):
            return
        blamed = self._column()
        if blamed is not None:
            name, reason = blamed
            remedy = f"leave it out with {exclude_option(name)}"
            raise DataError(f'the column "{name}" cannot be read ({reason}): {remedy}') from error

    def _column(self) -> tuple[str, str] | None:
        """The first column that cannot be read alone, and why. None if all can be, or if none of several can be."""
        names, blamed, readable = self._names(), None, False
        for name in names:
            reason = self._reason(name)
            if reason is None:
                readable = True
            elif blamed is None:
                blamed = name, reason
            if blamed is not None and (readable or len(names) == 1):
                return blamed
        return None

    def _names(self) -> list[str]:
        """The names of the columns to read."""
        excluded = {name.casefold() for name in self._options.exclude}
        try:
            names = [name for name, _ in self._reopen().columns()]
        except SourceError:
            return []
        columns = None if self._options.columns is None else {name.casefold() for name in self._options.columns}
        return [
            name for name in names if name.casefold() not in excluded and (not columns or name.casefold() in columns)
        ]

    def _reason(self, name: str) -> str | None:
        """Why a column cannot be read alone; None if it can."""
        options = self._options
        text, no_text = (tuple(other for other in names if other == name) for names in (options.text, options.no_text))
        try:
            source = self._reopen()
            schema = read_schema(source, replace(options, columns=(name,), exclude=(), text=text, no_text=no_text))
            for _ in Encoder(source, schema).batches():
                pass
        except SourceError as error:
            return str(error).removeprefix(UNREADABLE)
        except DataError:  # the column is not modelled, or has an error of its own kind
            pass
        return None
