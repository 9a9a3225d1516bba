"""A table as byte-packed codes, and the count of a conjunction by scanning them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import connect
from countless.query.parsing.parse import parse
from countless.query.parsing.sql import DIALECT

WIDTHS = (np.uint8, np.uint16, np.uint32)


class PackedCodes:
    """Every column as codes in the order of its values, NULL last, in one, two or four bytes each."""

    def __init__(self, table: pa.Table) -> None:
        self.rows = int(table.num_rows)
        self.bytes = 0
        self._codes: dict[str, NDArray[Any]] = {}
        self._dictionaries = connect()  # a table of values and codes for each column
        self._intervals: dict[tuple[str, str], tuple[int, int] | None] = {}
        for name in table.column_names:
            self._add(name, table.column(name).combine_chunks())

    def _add(self, name: str, column: pa.Array) -> None:
        encoded = pc.dictionary_encode(column)
        values = encoded.dictionary
        ranks = np.empty(len(values) + 1, dtype=np.int64)
        ranks[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
        ranks[-1] = len(values)  # NULL
        width = next(width for width in WIDTHS if len(values) <= np.iinfo(width).max)
        codes = encoded.indices.fill_null(len(values)).to_numpy()
        self._codes[name] = ranks[codes].astype(width)
        self.bytes += self._codes[name].nbytes
        dictionary = pa.table({name: pa.concat_arrays([values, pa.nulls(1, values.type)]), "countless_code": ranks})
        self._dictionaries.register("arriving", dictionary)
        self._dictionaries.execute(f"CREATE TABLE {quote_identifier('d_' + name)} AS SELECT * FROM arriving")
        self._dictionaries.unregister("arriving")

    def prepare(self, where: str) -> Callable[[], int] | None:
        """The scan for a conjunction of filters on one column each; None for any other clause."""
        from countless_lab import _scan

        arrays, lows, highs = [], [], []
        for condition in parse(where).flatten() if isinstance(parse(where), exp.And) else [parse(where)]:
            names = {column.name for column in condition.find_all(exp.Column)}
            if len(names) != 1:
                return None
            (name,) = names
            interval = self._interval(name, condition.sql(dialect=DIALECT))
            if interval is None:
                return None
            arrays.append(self._codes[name])
            lows.append(interval[0])
            highs.append(interval[1])
        columns, low, high, rows = tuple(arrays), tuple(lows), tuple(highs), self.rows
        if any(last < first for first, last in zip(low, high, strict=True)):
            return lambda: 0
        return lambda: _scan.count(columns, low, high, rows)

    def _interval(self, name: str, condition: str) -> tuple[int, int] | None:
        """The first and the last code that match; None if codes between them do not."""
        key = name, condition
        if key not in self._intervals:
            dictionary = quote_identifier("d_" + name)
            rows = self._dictionaries.execute(
                f"SELECT min(countless_code), max(countless_code), count(*) FROM {dictionary} WHERE {condition}"
            ).fetchall()
            low, high, codes = rows[0]
            if codes == 0:
                self._intervals[key] = 1, 0
            else:
                self._intervals[key] = (int(low), int(high)) if high - low + 1 == codes else None
        return self._intervals[key]


def has_scan() -> bool:
    """Whether the compiled scan is there."""
    try:
        from countless_lab import _scan  # noqa: F401
    except ImportError:
        return False
    return True
