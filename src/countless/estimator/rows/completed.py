"""A completed table: rows whose missing values have been filled in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from countless.cached_property import cached_property
from countless.data.atomic_files import format_of, write_whole
from countless.data.columns.types import TEXT, quote_identifier, sql_literal
from countless.data.frame import Frame
from countless.data.sources.file_formats import quote_path
from countless.data.sources.source import Source
from countless.errors import DataError, SourceError

INSERT_ROWS = 5_000  # rows of one INSERT statement


@dataclass(frozen=True, eq=False)
class Completed:
    """A table whose missing values were filled in by :meth:`Estimator.complete`.

    Attributes:
        source: The table that was given.
        cells: One line for each cell that was filled in: its row (from 0), its column, the value as DuckDB prints it,
            and the probability that the model gives it.
        names: For each column of the model, its name in the table.
        types: The types of the model's columns.
        rows: Number of rows of the table.
        left: Number of texts that are still missing.

    >>> rows = [{"age": 30, "education": "HS-grad", "hours_per_week": 40, "income": "<=50K"}]
    >>> est.complete(rows)
    <Completed: 1 cell filled in, of 1 rows>
    """

    source: Source
    cells: Frame
    names: Mapping[str, str]
    types: Mapping[str, str]
    rows: int
    left: int

    @cached_property
    def frame(self) -> Frame:
        """The completed table: the columns of the input in their order, then those that it lacked.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).frame.names[-1]
        'sex'
        """
        with _filled(self) as select:
            described = self.source.rows(f"DESCRIBE {select}")
            names, types = (tuple(str(line[index]) for line in described) for index in (0, 1))
            rows = self.source.rows(f"SELECT {', '.join(map(_fetched, names, types))} FROM ({select})")
        return Frame(names, types, tuple(map(list, zip(*rows, strict=True))) if rows else tuple([] for _ in names))

    def __len__(self) -> int:
        return self.rows

    def __str__(self) -> str:
        return f"{self.frame}\n{self._summary}"

    def __repr__(self) -> str:
        return f"<Completed: {self._summary}>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """The completed rows as dictionaries.

        Returns:
            One dictionary for each row, by the names of the columns.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).to_dicts()[0]["sex"]
        'Male'
        """
        return self.frame.to_dicts()

    def to_pandas(self) -> Any:
        """The completed table as a pandas DataFrame.

        Returns:
            The DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).to_pandas().shape
        (1, 5)
        """
        return self.frame.to_pandas()

    def to_arrow(self) -> Any:
        """The completed table as a pyarrow Table.

        Returns:
            The Table.

        Raises:
            MissingExtraError: pyarrow is not installed.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).to_arrow().shape
        (1, 5)
        """
        return self.frame.to_arrow()

    def to_polars(self) -> Any:
        """The completed table as a polars DataFrame.

        Returns:
            The DataFrame.

        Raises:
            MissingExtraError: polars is not installed.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).to_polars().shape
        (1, 5)
        """
        return self.frame.to_polars()

    @property
    def _summary(self) -> str:
        return f"{len(self.cells):,} {'cell' if len(self.cells) == 1 else 'cells'} filled in, of {self.rows:,} rows"

    @property
    def row(self) -> dict[str, Any]:
        """The completed row as a dictionary, if one row was given. Several rows raise a :class:`DataError`.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).row["sex"]
        'Male'
        """
        if self.rows != 1:
            raise DataError(f"there are {self.rows:,} rows: use .frame, or to_dicts()")
        return self.to_dicts()[0]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the completed table to a CSV or Parquet file. The file is complete, or it is not written.

        Args:
            path: The file; the ending ``.csv`` or ``.parquet`` chooses the format.

        Raises:
            CountlessError: Another ending, or the file cannot be written.

        >>> row = {"age": 90, "income": "<=50K", "education": "HS-grad", "hours_per_week": 40}
        >>> est.complete(row).write("completed.csv")
        """
        options = format_of(path)
        with _filled(self) as select:
            write_whole(path, lambda partial: self.source.run(f"COPY ({select}) TO {quote_path(partial)} ({options})"))


@contextmanager
def _filled(completed: Completed) -> Iterator[str]:
    """SQL for the completed table. Inside this block, a temporary DuckDB table has the values that were filled in."""
    source, cells = completed.source, completed.cells
    if not len(cells):
        yield f"SELECT * FROM {source.table}"
        return
    names = list(dict.fromkeys(cells.columns[1]))
    indexes = {name: index for index, name in enumerate(names)}
    lines: dict[int, list[str | None]] = {}
    for row, name, value in zip(*cells.columns[:3], strict=True):
        lines.setdefault(row, [None] * len(names))[indexes[name]] = value
    table = quote_identifier(f"{source.name}_filled")
    source.run(
        f"CREATE TEMP TABLE {table} (place BIGINT, {', '.join(f'f{index} VARCHAR' for index in range(len(names)))})"
    )
    try:
        texts = [f"({', '.join([str(row), *map(_literal, values)])})" for row, values in lines.items()]
        for first in range(0, len(texts), INSERT_ROWS):
            source.run(f"INSERT INTO {table} VALUES {', '.join(texts[first : first + INSERT_ROWS])}")
        yield _select(completed, indexes, table)
    finally:
        source.run(f"DROP TABLE {table}")


def _select(completed: Completed, indexes: Mapping[str, int], table: str) -> str:
    """SQL for the completed table; ``indexes`` are those of the filled columns in the temporary ``table``."""
    source = completed.source
    model_names = {input_name: name for name, input_name in completed.names.items()}
    selected = []
    for input_name, kind in source.columns():
        column, name = f"rows.{quote_identifier(input_name)}", model_names.get(input_name, "")
        if name in indexes:
            column = _merged(source, column, kind, f"filled.f{indexes[name]}", completed.types[name])
        selected.append(f"{column} AS {quote_identifier(input_name)}")
    selected += [
        f"CAST(filled.f{index} AS {completed.types[name]}) AS {quote_identifier(name)}"
        for name, index in indexes.items()
        if name not in completed.names
    ]
    number = quote_identifier(f"{source.name}_place")  # no column has this name
    numbered = f"SELECT *, row_number() OVER () - 1 AS {number} FROM {source.table}"
    return (
        f"SELECT {', '.join(selected)} FROM ({numbered}) AS rows "
        f"LEFT JOIN {table} AS filled ON filled.place = rows.{number} ORDER BY rows.{number}"
    )


def _merged(source: Source, column: str, kind: str, filled: str, stored: str) -> str:
    """SQL for a column with its NULLs filled in. It keeps its type, unless that cannot hold the values."""
    if kind in (TEXT, stored):
        return f"coalesce({column}, CAST({filled} AS {kind}))"
    try:
        source.rows(f"SELECT coalesce(CAST(NULL AS {kind}), CAST(NULL AS {stored}))")
    except SourceError:
        return f"coalesce(CAST(CAST({column} AS VARCHAR) AS {stored}), CAST({filled} AS {stored}))"
    return f"coalesce({column}, CAST({filled} AS {stored}))"


def _fetched(name: str, kind: str) -> str:
    """SQL for a column as Python can read it: times with a zone as text, because they would need another package."""
    return f"CAST({quote_identifier(name)} AS VARCHAR)" if kind.endswith("TIME ZONE") else quote_identifier(name)


def _literal(text: str | None) -> str:
    return "NULL" if text is None else sql_literal(text, TEXT)
