"""A result frame: a small table with named columns of DuckDB types."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from countless.cached_property import cached_property
from countless.data.atomic_files import format_of, write_whole
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import connect
from countless.errors import MissingExtraError

MOST_PRINTED = 40  # rows; of a longer table the first and the last 20
ZONED = "TIMESTAMP WITH TIME ZONE"
WIDEST = 40  # characters of a value


@dataclass(frozen=True, eq=False)
class Frame:
    """A table in memory: rows by columns.

    Attributes:
        names: Names of the columns.
        types: DuckDB's names of their types.
        columns: The values of each column: Python values, or strings as DuckDB prints them; None is NULL.

    >>> frame = Frame(("name", "rows"), ("VARCHAR", "BIGINT"), (["a", None], ["3", 12]))
    >>> len(frame), frame.rows[0]
    (2, ('a', 3))
    >>> print(frame)
    name  rows
    a        3
    NULL    12
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[Sequence[Any], ...]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values.

        >>> est.distribution("sex").rows[0][0]
        'Male'
        """
        if ZONED not in self.types:
            return self._relation().fetchall()
        # For values with a time zone DuckDB would need another package.
        rows = self._relation("TIMESTAMP").fetchall()
        zoned = [kind == ZONED for kind in self.types]
        return [
            tuple(_utc(value) if has_zone else value for value, has_zone in zip(row, zoned, strict=True))
            for row in rows
        ]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries.

        Returns:
            One dictionary for each row, by the names of the columns.

        >>> Frame(("name",), ("VARCHAR",), (["a", None],)).to_dicts()
        [{'name': 'a'}, {'name': None}]
        """
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

        Returns:
            The DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.

        >>> Frame(("name",), ("VARCHAR",), (["a"],)).to_pandas().shape
        (1, 1)
        """
        return _requiring("pandas", self._relation().df)

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table.

        Returns:
            The Table.

        Raises:
            MissingExtraError: pyarrow is not installed.

        >>> Frame(("name",), ("VARCHAR",), (["a"],)).to_arrow().shape
        (1, 1)
        """
        return _requiring("pyarrow", self._relation().to_arrow_table)

    def to_polars(self) -> Any:
        """The table as a polars DataFrame.

        Returns:
            The DataFrame.

        Raises:
            MissingExtraError: polars is not installed.

        >>> Frame(("name",), ("VARCHAR",), (["a"],)).to_polars().shape
        (1, 1)
        """
        return _requiring("polars", self._relation().pl)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a CSV or Parquet file. The file is complete, or it is not written.

        Args:
            path: The file; the ending ``.csv`` or ``.parquet`` chooses the format.

        Raises:
            CountlessError: Another ending, or the file cannot be written.

        >>> est.distribution("sex").write("sex.csv")
        """
        parquet, relation = "parquet" in format_of(path), self._relation()
        write_whole(
            path, relation.write_parquet if parquet else lambda partial: relation.write_csv(partial, header=True)
        )

    def __str__(self) -> str:
        return aligned(self.names, self.types, self.rows)

    def _relation(self, zoned_as: str = ZONED) -> duckdb.DuckDBPyRelation:
        """The table as a relation of a new DuckDB database; times with a zone have the type ``zoned_as``."""
        selected = []
        for index, (name, kind) in enumerate(zip(self.names, self.types, strict=True), 1):
            result_type = zoned_as if kind == ZONED else kind
            selected.append(f"CAST(unnest(CAST(${index} AS {kind}[])) AS {result_type}) AS {quote_identifier(name)}")
        connection = connect()
        return connection.query(f"SELECT {', '.join(selected)}", params=[list(values) for values in self.columns])


def aligned(names: Sequence[str], types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    r"""The rows as aligned text; an ellipsis replaces the middle rows of a long table.

    >>> print(aligned(["two\nlines"], ["VARCHAR"], [("a\tb",)]))
    two\nlines
    a\tb
    """
    shown = list(rows)
    if len(shown) > MOST_PRINTED:
        shown = [*shown[: MOST_PRINTED // 2], *shown[-(MOST_PRINTED // 2) :]]
    texts = [tuple(map(_on_one_line, names)), *(tuple(map(_shown, row)) for row in shown)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if kind == "VARCHAR" else text.rjust(width)
            for text, width, kind in zip(row, widths, types, strict=True)
        ).rstrip()
        for row in texts
    ]
    if len(shown) < len(rows):
        lines.insert(1 + MOST_PRINTED // 2, f"... {len(rows) - len(shown):,} more rows ...")
    return "\n".join(lines)


def _utc(value: Any) -> Any:
    """The time with the zone UTC; other values as they are."""
    return value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) else value


def _on_one_line(text: str) -> str:
    """The text with line breaks, tabs and other unprintable characters escaped."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _shown(value: Any) -> str:
    """A value as text for people."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"
    text = _on_one_line(str(value))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _requiring(package: str, make: Any) -> Any:
    """The result of ``make()``, or an error that says to install ``package``."""
    try:
        return make()
    except (ImportError, duckdb.InvalidInputException) as error:
        if isinstance(error, duckdb.Error) and package not in str(error):
            raise
        raise MissingExtraError(f"this needs {package}: pip install {package}") from None
