"""From the tables that a user names to the data sets of the experiments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from countless.bench.paper.cells import Data
from countless.bench.paper.scale import Scale
from countless.data.source import Source
from countless.data.table import EncodeOptions, columns_and_texts
from countless.errors import DataError

UNSAFE = re.compile(r"[^\w-]+")


def data_sets(tables: Sequence[str], exclude: Sequence[str], scale: Scale) -> list[Data]:
    """A data set for every table: of its columns, or of its text if it has nothing else.

    ``exclude`` names columns of any of the tables. Of a table that has both, the text is excluded, too.
    """
    sources = {table: Source.open(table) for table in tables}
    columns = {table: [name for name, _ in source.columns()] for table, source in sources.items()}
    known = {name.casefold() for names in columns.values() for name in names}
    for name in exclude:
        if name.casefold() not in known:
            some = ", ".join(columns[tables[0]])
            raise DataError(f'--exclude names "{name}", which no table has: the first one has {some}')
    wanted = {name.casefold() for name in exclude}
    found: dict[str, Data] = {}
    for table, source in sources.items():
        left_out = tuple(name for name in columns[table] if name.casefold() in wanted)
        data = _data(table, source.count(), left_out, scale)
        if data.name in found:
            raise DataError(f"two tables are called {data.name}: rename the file of one")
        found[data.name] = data
    return list(found.values())


def result_name(table: str) -> str:
    """What results call a table.

    >>> result_name("data/people.csv.gz"), result_name("logs/2024 *.csv"), result_name("dmv-full")
    ('people', '2024', 'dmv-full')
    """
    return UNSAFE.sub("_", Path(table).name.split(".")[0]).strip("_") or "table"


def _data(table: str, count: int, exclude: tuple[str, ...], scale: Scale) -> Data:
    """The data set of one table. What is text is told by the very rows that are used."""
    data = Data(result_name(table), table, min(count, scale.rows or count), exclude)
    columns, texts = columns_and_texts(data.open(), EncodeOptions(exclude=exclude))
    if columns:
        return replace(data, exclude=exclude + texts)
    if len(texts) > 1:
        raise DataError(
            f"{table} has several columns of text, {', '.join(texts)}: leave one of them, and --exclude the others"
        )
    return replace(data, text=True, rows=min(count, scale.strings or count))
