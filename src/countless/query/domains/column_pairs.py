"""Comparisons of two columns of the evidence rows, such as ``shipped > due``, by NumPy instead of DuckDB.

Only columns whose values NumPy compares as DuckDB does are compared here: integers and doubles with each other, and
dates and timestamps with each other.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from countless.arrays import BoolArray
from countless.data.columns.schema import Column
from countless.data.evidence import EvidenceRows
from countless.query.domains.comparisons import FUNCTIONS
from countless.query.parsing.names import resolve

INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})
TIMES = frozenset({"DATE", "TIMESTAMP"})
LARGEST = 2.0**53  # of the integers that a double holds exactly

Keys = NDArray[np.float64] | NDArray[np.datetime64]


class ColumnPairs:
    """Compares two columns row by row. Safe to share by threads."""

    def __init__(self, rows: EvidenceRows) -> None:
        self._rows = rows
        self._keys: dict[int, Keys | None] = {}

    def satisfied(self, predicate: exp.Expr) -> BoolArray | None:
        """The rows for which ``predicate`` is true; None if it is not a comparison of two such columns."""
        compare = FUNCTIONS.get(type(predicate))
        left, right = predicate.args.get("this"), predicate.args.get("expression")
        if compare is None or not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return None
        schema, codes = self._rows.schema, self._rows.codes
        left_index, right_index = resolve(schema, left, None), resolve(schema, right, None)
        left_keys, right_keys = self._keys_of(left_index), self._keys_of(right_index)
        if left_keys is None or right_keys is None or left_keys.dtype != right_keys.dtype:
            return None
        left_values, right_values = left_keys[codes[left_index]], right_keys[codes[right_index]]
        matches: BoolArray = compare(left_values, right_values)
        if compare is operator.ne:  # NULL is stored as NaN or NaT, which differ from everything
            matches &= ~(np.isnan(left_values) | np.isnan(right_values))
        return matches

    def _keys_of(self, index: int) -> Keys | None:
        if index not in self._keys:
            self._keys[index] = _keys(self._rows.schema.coded[index])
        return self._keys[index]


def _keys(column: Column) -> Keys | None:
    """A number or time for each code of ``column``, NaN or NaT for NULL; None if NumPy compares them otherwise."""
    if column.type in INTEGERS or column.type == "DOUBLE":
        numbers = np.array([*column.values, "nan"], dtype=np.str_).astype(np.float64)
        values = numbers[:-1]
        too_large = column.type in INTEGERS and bool((np.abs(values) > LARGEST).any())
        return None if too_large or np.isnan(values).any() else numbers
    if column.type in TIMES:
        try:
            return np.array([*column.values, "NaT"], dtype="datetime64[us]")
        except ValueError:  # infinity, or years before 1 and after 9999
            return None
    return None
