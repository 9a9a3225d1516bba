"""The exceptions that Countless raises.

::

    CountlessError
    ├── DataError                 the table cannot be read or modelled
    │   ├── SourceError               no such file or database, not a table, a type DuckDB cannot scan
    │   │   └── SourceOptionError         a table or a query that does not go with it; an OptionError too
    │   └── EmptyTableError           no rows, or no column left to model
    ├── QueryError                the question cannot be answered; knows the spot in the clause
    │   ├── QuerySyntaxError          not SQL
    │   ├── UnknownColumnError        no such column (with "did you mean")
    │   ├── ColumnLeftOutError        the column exists but the model does not hold it
    │   ├── QueryTypeError            a literal or a function that does not fit the column's type
    │   ├── UnsupportedQueryError     SQL that no model of one table's rows can answer
    │   │   └── NoTextModelError          it needs a network of text, which the model file does not have
    │   ├── QueryTooLargeError        too many disjoint boxes, or too large to enumerate
    │   └── NoRowsError               rows are to be drawn where none matches
    ├── ModelFileError            the model file is missing, damaged, hostile or newer than this library
    ├── OptionError               an option has a wrong type or value; names the argument
    ├── TrainingError             a checkpoint, or a model, that training cannot use
    ├── ClusterError              no cluster there, or training on it fails
    ├── ServerError               PostgreSQL cannot be started here
    └── MissingExtraError         an optional dependency is not installed

Every message says what is wrong and how to fix it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LONG_LINE = 400  # characters of a clause that an error shows at most


class CountlessError(Exception):
    """Base class of every error that Countless raises on purpose."""


class DataError(CountlessError):
    """The table cannot be read or modelled."""


class SourceError(DataError):
    """The source is missing, unreadable, out of reach, or not something DuckDB can scan."""


class EmptyTableError(DataError):
    """The table has no rows, or no column that can be modelled."""


class QueryError(CountlessError):
    """A question that cannot be answered.

    ``clause`` is the text of the question, and ``span`` the half-open range of characters with the error, if it is
    known; ``str(error)`` then underlines it.
    """

    def __init__(self, message: str, clause: str | None = None, span: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.clause = clause
        self.span = span

    def __str__(self) -> str:
        if self.clause is None or self.span is None:
            return self.message
        return f"{self.message}\n{underline(self.clause, *self.span)}"


class QuerySyntaxError(QueryError):
    """The clause is not SQL."""


class UnknownColumnError(QueryError):
    """The clause names a column that the table does not have."""


class ColumnLeftOutError(QueryError):
    """The clause names a column of the table that the model does not hold."""


class QueryTypeError(QueryError):
    """A literal, operator or function does not fit the column's type."""


class UnsupportedQueryError(QueryError):
    """SQL that a model of one table's rows cannot answer, such as a subquery or an aggregate."""


class NoTextModelError(UnsupportedQueryError):
    """Something needs a network of text, and the model file has none."""

    def __init__(self, purpose: str) -> None:
        super().__init__(f"the model has no text model, which {purpose}: fit it again with --text-model")


class QueryTooLargeError(QueryError):
    """The clause needs more disjoint boxes, enumerated combinations, time or memory than the limit.

    ``is_final`` says that the time or memory is used up, so that no other way to answer is tried.
    """

    is_final = False


def is_final(error: QueryError) -> bool:
    """Whether no other way to answer may be tried."""
    return isinstance(error, QueryTooLargeError) and error.is_final


class NoRowsError(QueryError):
    """No row, or no string, matches: there is nothing to draw."""


class ModelFileError(CountlessError):
    """The model file is missing, damaged, hostile, or written by a newer Countless."""


class OptionError(CountlessError):
    """An option has a wrong type or value, or two options do not go together.

    ``message`` has the names of options in braces, so that a command can show its own flags instead.

    >>> error = OptionError("{workers} must be at least 1, not 0")
    >>> str(error), error.shown(lambda name: "--" + name)
    ('workers must be at least 1, not 0', '--workers must be at least 1, not 0')
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.shown(lambda name: name)

    def shown(self, label: Callable[[str], str]) -> str:
        """The message, with each option called by its ``label``."""
        return re.sub(r"\{([a-z_.]+)\}", lambda match: label(match[1]), self.message)


class SourceOptionError(OptionError, SourceError):
    """An option that does not apply to the source, such as the name of a table for a file."""


class TrainingError(CountlessError):
    """Training cannot start or continue with this checkpoint, or for this kind of model."""


class ClusterError(CountlessError):
    """There is no cluster, it has too little room, or its machines do not see the shared folder."""


class ServerError(CountlessError):
    """PostgreSQL is not installed, or does not start; the message names the ``apt-get install`` to run."""


class MissingExtraError(CountlessError):
    """An optional dependency is needed; the message names the ``pip install`` to run."""


def underline(text: str, start: int, end: int) -> str:
    """The line of ``text`` that holds ``start``, with carets below the characters from ``start`` to ``end``.

    >>> print(underline("age > 3 AND agee < 5", 12, 16))
      age > 3 AND agee < 5
                  ^^^^
    """
    start = min(start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    if line_end - line_start > LONG_LINE:  # show the part around the error
        line_start = max(line_start, start - LONG_LINE // 4)
        line_end = min(line_end, line_start + LONG_LINE)
    width = max(1, min(end, line_end) - start)
    return f"  {text[line_start:line_end]}\n  {' ' * (start - line_start)}{'^' * width}"
