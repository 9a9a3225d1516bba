"""A string dictionary inside DuckDB: each distinct string gets a number, found by exact comparison.

A hash would be a smaller key, but DuckDB's ``hash`` gives ordinary strings the same number, such as
``Order 159 of customer 10`` and ``Order 179 of customer 12``. No two strings have the same place in a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from countless.data.columns.types import quote_identifier, sql_texts
from countless.data.sources.source import Source, new_name
from countless.errors import DataError


class StringDictionary:
    """Numbers ``texts``, which all differ, from 0 on, for the statements of ``source`` inside a ``with`` block.

    It is an ENUM type of DuckDB's. Unlike a join with the texts, a cast keeps the rows in their order.

    >>> import duckdb
    >>> source = Source.open(duckdb.sql("SELECT unnest(['b', 'a', 'other', NULL]) AS letter"))
    >>> with StringDictionary(source, ["a", "b"]) as letters:
    ...     source.rows(f"SELECT {letters.place('letter')} FROM {source.table}")
    [(1,), (0,), (None,), (None,)]
    """

    def __init__(self, source: Source, texts: Sequence[str]) -> None:
        self._source, self._texts = source, texts
        self._type = quote_identifier(new_name())

    def __enter__(self) -> StringDictionary:
        numbered = f"unnest({sql_texts(self._texts)}) WITH ORDINALITY AS numbered(text, place)"
        self._source.run(f"CREATE TEMP TYPE {self._type} AS ENUM (SELECT text FROM {numbered} ORDER BY place)")
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(DataError):  # of a statement that failed before; the type goes with the connection
            self._source.run(f"DROP TYPE IF EXISTS {self._type}")

    def place(self, value: str) -> str:
        """SQL for the number of ``value``, an SQL expression; NULL for NULL and for a string that is not there."""
        return f"enum_code(TRY_CAST({value} AS {self._type}))"
