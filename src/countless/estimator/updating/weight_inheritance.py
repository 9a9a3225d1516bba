"""Weight inheritance: a network whose positions get new symbols keeps the weights of its old ones.

In a column of one position, each old symbol keeps its row of the embedding, at the symbol's new index. In a column of
digits, the codes after a new one are shifted, so that a digit stands for other codes than before. It inherits from the
digits that stood for these codes. A new symbol starts like its neighbours, or, if values have no order, like the mean
of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.digits import to_digits
from countless.data.columns.schema import Column
from countless.data.columns.types import TEXT
from countless.data.encoding.schema_growth import NEW, Growth

SMOOTHING = 0.5  # rows that are added to those of every symbol


@dataclass(frozen=True, eq=False)
class Heritage:
    """For one position, how much each symbol inherits from each old one (symbols, old symbols); rows add up to 1.

    ``new`` marks the symbols that did not exist before.
    """

    shares: FloatArray
    new: BoolArray


def heritages(growth: Growth, counts: Sequence[IntArray] | None) -> list[Heritage]:
    """The heritage of every position; ``counts`` are the old rows of every code of each column, if they are known."""
    results = []
    for index, column in enumerate(growth.schema.modelled):
        old_column, origin = growth.old.modelled[index], growth.origins[index]
        known_codes = np.flatnonzero(origin != NEW)
        weights = np.ones(len(known_codes)) if counts is None else counts[index][origin[known_codes]] + SMOOTHING
        old_digits = to_digits(origin[known_codes], old_column.radices)
        new_digits = to_digits(known_codes, column.radices)
        for old_digit, new_digit, old_size, size in zip(
            old_digits, new_digits, old_column.radices, column.radices, strict=True
        ):
            shares = np.zeros((size, old_size))
            np.add.at(shares, (new_digit.astype(np.int64), old_digit.astype(np.int64)), weights)
            results.append(_with_new_symbols(shares, column))
    return results


def inherited(
    arrays: Mapping[str, NDArray[Any]], heritages: Sequence[Heritage], counts: Sequence[IntArray]
) -> dict[str, NDArray[Any]]:
    """The arrays of a columns' network under the new symbols; MASK stays last at each position.

    ``counts`` are the rows of each symbol of each position now, from which the biases of new symbols follow.
    """
    bias = [
        _with_frequency(part, heritage, count)
        for part, heritage, count in zip(_inherit(arrays["bias"], heritages), heritages, counts, strict=True)
    ]
    embedding = np.concatenate(_inherit(arrays["embedding"], heritages))
    return {**arrays, "embedding": embedding, "bias": np.concatenate(bias)}


def inherited_context(arrays: Mapping[str, NDArray[Any]], heritages: Sequence[Heritage]) -> dict[str, NDArray[Any]]:
    """The arrays of a text network whose rows have these positions."""
    name = "context.embedding"
    if name not in arrays:
        return dict(arrays)
    return {**arrays, name: np.concatenate(_inherit(arrays[name], heritages))}


def _with_new_symbols(shares: FloatArray, column: Column) -> Heritage:
    """The heritage of a position; new symbols, whose ``shares`` are 0, inherit from their neighbours or from all."""
    totals = shares.sum(axis=1, keepdims=True)
    new: BoolArray = totals[:, 0] == 0
    shares = np.divide(shares, totals, out=shares, where=totals > 0)
    known = np.flatnonzero(~new)
    if not len(known):
        shares[:] = 1.0 / shares.shape[1]
        return Heritage(shares, new)
    has_one_position = len(column.radices) == 1
    is_ordered = column.grid is not None or column.type not in (TEXT, "BOOLEAN") or not has_one_position
    for symbol in np.flatnonzero(new):
        is_null = has_one_position and column.has_null and symbol == column.null
        if is_ordered and not is_null:
            after = np.searchsorted(known, symbol)
            nearest = known[max(0, after - 1) : after + 1]
            shares[symbol] = shares[nearest].mean(axis=0)
        else:
            shares[symbol] = shares[known].mean(axis=0)
    return Heritage(shares, new)


def _inherit(array: NDArray[Any], heritages: Sequence[Heritage]) -> list[NDArray[Any]]:
    """The rows of each position under the new symbols, MASK included."""
    old_sizes = [heritage.shares.shape[1] + 1 for heritage in heritages]
    parts = np.split(array, np.cumsum(old_sizes)[:-1])
    return [
        np.concatenate([heritage.shares @ part[:-1].astype(np.float64), part[-1:]]).astype(np.float32)
        for part, heritage in zip(parts, heritages, strict=True)
    ]


def _with_frequency(bias: NDArray[Any], heritage: Heritage, counts: IntArray) -> NDArray[Any]:
    """The bias with new symbols' biases set by their counts, in the same proportion as for other symbols."""
    is_old = ~heritage.new
    if not heritage.new.any() or not is_old.any():
        return bias
    logs = np.log(counts + SMOOTHING)
    result = bias.copy()
    offset = float(np.mean(bias[:-1][is_old] - logs[is_old]))
    result[:-1][heritage.new] = offset + logs[heritage.new]
    return result
