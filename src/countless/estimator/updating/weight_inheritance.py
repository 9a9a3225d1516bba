"""Weight inheritance: a network whose positions get new symbols keeps the weights of its old ones.

A column of one position keeps the rows of its embedding, at their new places. Of a column in digits the codes after a
new one move by a place, so that a digit stands for other codes than before: it inherits from the digits that had its
rows. What is new begins like its neighbours, or, where values have no order, like the mean of all.
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

FEW = 0.5  # rows that every symbol counts for besides its own


@dataclass(frozen=True, eq=False)
class Heritage:
    """For one position, how much each new symbol takes from each old one, (new, old); all rows add up to 1.

    ``new`` are the symbols that take from others than themselves.
    """

    shares: FloatArray
    new: BoolArray


def heritages(growth: Growth, counts: Sequence[IntArray] | None) -> list[Heritage]:
    """Of every position; ``counts`` are the old rows of every code of each column, if they are known."""
    found = []
    for index, column in enumerate(growth.schema.modelled):
        before, origin = growth.old.modelled[index], growth.origins[index]
        kept = np.flatnonzero(origin != NEW)
        weights = np.ones(len(kept)) if counts is None else counts[index][origin[kept]] + FEW
        olds, news = to_digits(origin[kept], before.radices), to_digits(kept, column.radices)
        for old, new, old_size, size in zip(olds, news, before.radices, column.radices, strict=True):
            shares = np.zeros((size, old_size))
            np.add.at(shares, (new.astype(np.int64), old.astype(np.int64)), weights)
            found.append(_completed(shares, column))
    return found


def inherited(
    arrays: Mapping[str, NDArray[Any]], own: Sequence[Heritage], counts: Sequence[IntArray]
) -> dict[str, NDArray[Any]]:
    """The arrays of a columns' model under new symbols, MASK last at each position as before.

    ``counts`` are how often each symbol of each position occurs now: a new symbol's bias follows them.
    """
    parts = zip(_parts(arrays["bias"], own), own, counts, strict=True)
    bias = [_with_frequency(_bias(part, each), each, count) for part, each, count in parts]
    return {**arrays, "embedding": _embedding(arrays["embedding"], own), "bias": np.concatenate(bias)}


def inherited_context(arrays: Mapping[str, NDArray[Any]], own: Sequence[Heritage]) -> dict[str, NDArray[Any]]:
    """The arrays of a text model whose rows have these positions."""
    name = "context.embedding"
    return {**arrays, name: _embedding(arrays[name], own)} if name in arrays else dict(arrays)


def _completed(shares: FloatArray, column: Column) -> Heritage:
    """With heirs for symbols that had no rows before."""
    totals = shares.sum(axis=1, keepdims=True)
    new: BoolArray = totals[:, 0] == 0
    shares = np.divide(shares, totals, out=shares, where=totals > 0)
    known = np.flatnonzero(~new)
    if not len(known):
        shares[:] = 1.0 / shares.shape[1]
        return Heritage(shares, new)
    one_position = len(column.radices) == 1
    ordered = column.grid is not None or column.type not in (TEXT, "BOOLEAN") or not one_position
    for symbol in np.flatnonzero(new):
        is_null = one_position and column.has_null and symbol == column.null
        if ordered and not is_null:
            after = np.searchsorted(known, symbol)
            nearest = known[max(0, after - 1) : after + 1]
            shares[symbol] = shares[nearest].mean(axis=0)
        else:
            shares[symbol] = shares[known].mean(axis=0)
    return Heritage(shares, new)


def _parts(array: NDArray[Any], own: Sequence[Heritage]) -> list[NDArray[Any]]:
    """The rows of each position, MASK included, under the old symbols."""
    sizes = [each.shares.shape[1] + 1 for each in own]
    return np.split(array, np.cumsum(sizes)[:-1])


def _embedding(array: NDArray[Any], own: Sequence[Heritage]) -> NDArray[Any]:
    parts = [
        np.concatenate([each.shares @ part[:-1].astype(np.float64), part[-1:]])
        for part, each in zip(_parts(array, own), own, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32)


def _bias(part: NDArray[Any], each: Heritage) -> NDArray[Any]:
    return np.concatenate([each.shares @ part[:-1].astype(np.float64), part[-1:]]).astype(np.float32)


def _with_frequency(bias: NDArray[Any], each: Heritage, counts: IntArray) -> NDArray[Any]:
    """New symbols are as much more or less likely than others as their rows are more or fewer."""
    known = ~each.new
    if not each.new.any() or not known.any():
        return bias
    logs = np.log(counts + FEW)
    found = bias.copy()
    usual = float(np.mean(bias[:-1][known] - logs[known]))
    found[:-1][each.new] = usual + logs[each.new]
    return found
