"""Groups of correlated columns for PostgreSQL's extended statistics."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.fitting.orders import entropy

SAMPLE = 10_000  # rows
BINS = 32  # bins of a column that has more values
LEAST = 0.01  # bits; less mutual information may be chance


def related_groups(source: Source, names: Sequence[str], largest: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Disjoint groups of two to ``largest`` columns, as indices into ``names``.

    Pairs are taken by their mutual information in a sample of rows, the largest first, and the groups of the two
    columns are merged if the result is not too large. Columns that are independent of all others are in no group.
    """
    codes = _codes(source.sampled(SAMPLE, seed), names)
    pairs = itertools.combinations(range(len(names)), 2)
    information = {(first, second): mutual_information(codes[first], codes[second]) for first, second in pairs}
    group_of: dict[int, tuple[int, ...]] = {index: (index,) for index in range(len(names))}
    for first, second in sorted(information, key=lambda pair: -information[pair]):
        joined = tuple(sorted({*group_of[first], *group_of[second]}))
        if information[first, second] > LEAST and len(joined) <= largest:
            group_of.update(dict.fromkeys(joined, joined))
    return sorted({group for group in group_of.values() if len(group) > 1})


def mutual_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Mutual information of two columns of codes in bits, minus its bias (Miller and Madow).

    >>> halves = np.arange(1000) % 2
    >>> round(mutual_information(halves, halves), 2), round(mutual_information(halves, np.arange(1000) // 500), 2)
    (1.0, -0.0)
    """
    counts = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(counts, (first, second), 1)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    bias = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1) / (2 * np.log(2) * len(first))
    return float(entropy(rows) + entropy(columns) - entropy(counts.ravel()) - bias)


def _codes(sample: Source, names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Every column as small codes: of its values, or of BINS bins with equal numbers of rows."""
    ranks = []
    for index, name in enumerate(names):
        column = quote_identifier(name)
        ranks.append(f"dense_rank() OVER (ORDER BY {column}) - 1 AS dense{index}")
        ranks.append(f"rank() OVER (ORDER BY {column}) - 1 AS rank{index}")
    arrays = sample.arrays(f"SELECT {', '.join(ranks)} FROM {sample.table}")
    codes = []
    for index in range(len(names)):
        dense, rank = arrays[f"dense{index}"], arrays[f"rank{index}"]
        codes.append(dense if dense.max() < BINS else rank * BINS // len(rank))
    return codes
