"""A string dictionary inside DuckDB: each distinct string gets a number, found by exact comparison.

A hash would be a smaller key, but DuckDB's ``hash`` gives ordinary strings the same number, such as
``Order 159 of customer 10`` and ``Order 179 of customer 12``. In a dictionary no two strings have the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from countless.data.columns.types import quote_identifier, sql_texts
from countless.data.sources.source import Source, new_name
from countless.errors import DataError


class StringDictionary:
    """Numbers distinct ``texts`` from 0 on, for statements of ``source`` inside a ``with`` block.

    It is an ENUM type in DuckDB. Unlike a join with the texts, a cast keeps the rows in their order.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT unnest(['b', 'a', 'other', NULL]) AS letter"))
    >>> with StringDictionary(source, ["a", "b"]) as letters:
    ...     source.rows(f"SELECT {letters.code('letter')} FROM {source.table}")
    [(1,), (0,), (None,), (None,)]
    """

    def __init__(self, source: Source, texts: Sequence[str]) -> None:
        self._source, self._texts = source, texts
        self._type = quote_identifier(new_name())

    def __enter__(self) -> StringDictionary:
        numbered = f"unnest({sql_texts(self._texts)}) WITH ORDINALITY AS numbered(text, code)"
        self._source.run(f"CREATE TEMP TYPE {self._type} AS ENUM (SELECT text FROM {numbered} ORDER BY code)")
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(DataError):  # after a statement that failed; the type is gone when the connection is closed
            self._source.run(f"DROP TYPE IF EXISTS {self._type}")

    def code(self, value: str) -> str:
        """SQL for the number of ``value``, an SQL expression; NULL for NULL and for a string without a number."""
        return f"enum_code(TRY_CAST({value} AS {self._type}))"
