"""Finding the column that is the reason why DuckDB cannot read a table."""

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

# Errors about values, by what DuckDB's messages begin with. Others are about files, memory or permissions.
OF_VALUES = re.compile(r"(?:Conversion|Out of Range|Invalid Input|Not implemented|Mismatch Type|INTERNAL|FATAL) Error")
OF_FILES = "not utf-8"


class ColumnBlame:
    """Makes an error in its block, in which a table is read, one that names the column, if it is one column's.

    After such an error each column is read alone, from the table that ``reopen`` opens anew: an internal error of
    DuckDB's ends the connection.
    """

    def __init__(self, reopen: Callable[[], Source], options: EncodeOptions) -> None:
        self._reopen, self._options = reopen, options

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, SourceError) or not OF_VALUES.search(str(error)) or OF_FILES in str(error):
            return
        found = self._column()
        if found is not None:
            name, reason = found
            remedy = f"leave it out with {exclude_option(name)}"
            raise DataError(f'the column "{name}" cannot be read ({reason}): {remedy}') from error

    def _column(self) -> tuple[str, str] | None:
        """The first column that cannot be read alone, and why; None if that is so of each of several."""
        wanted, blamed, readable = self._names(), None, False
        for name in wanted:
            reason = self._reason(name)
            if reason is None:
                readable = True
            elif blamed is None:
                blamed = name, reason
            if blamed is not None and (readable or len(wanted) == 1):
                return blamed
        return None

    def _names(self) -> list[str]:
        """The columns that were to be read."""
        excluded = {name.casefold() for name in self._options.exclude}
        try:
            names = [name for name, _ in self._reopen().columns()]
        except SourceError:
            return []
        chosen = None if self._options.columns is None else {name.casefold() for name in self._options.columns}
        return [name for name in names if name.casefold() not in excluded and (not chosen or name.casefold() in chosen)]

    def _reason(self, name: str) -> str | None:
        """Why a column cannot be read alone, if it cannot."""
        options = self._options
        text, no_text = (tuple(own for own in names if own == name) for names in (options.text, options.no_text))
        try:
            source = self._reopen()
            schema = read_schema(source, replace(options, columns=(name,), exclude=(), text=text, no_text=no_text))
            for _ in Encoder(source, schema).batches():
                pass
        except SourceError as error:
            return str(error).removeprefix(UNREADABLE)
        except DataError:  # it is not modelled, or reported to the user in other words
            pass
        return None
