"""Groups of correlated columns for PostgreSQL's extended statistics."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.fitting.orders import entropy

SAMPLE = 10_000  # rows that are looked at
BINS = 32  # of a column with more values
LEAST = 0.01  # bits: less is chance


def related_groups(source: Source, names: Sequence[str], largest: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Disjoint groups of two to ``largest`` columns, by their places in ``names``.

    Pairs are taken in the order of their mutual information on a sample of rows, the largest first, and the two
    columns' groups become one while it is not too large. Columns that know nothing of any other are in no group.
    """
    codes = _codes(source.sampled(SAMPLE, seed), names)
    pairs = itertools.combinations(range(len(names)), 2)
    shared = {(a, b): mutual_information(codes[a], codes[b]) for a, b in pairs}
    group_of: dict[int, tuple[int, ...]] = {place: (place,) for place in range(len(names))}
    for a, b in sorted(shared, key=lambda pair: -shared[pair]):
        joined = tuple(sorted({*group_of[a], *group_of[b]}))
        if shared[a, b] > LEAST and len(joined) <= largest:
            group_of.update(dict.fromkeys(joined, joined))
    return sorted({group for group in group_of.values() if len(group) > 1})


def mutual_information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Mutual information of two columns of codes in bits, less what chance alone would show (Miller and Madow).

    >>> halves = np.arange(1000) % 2
    >>> round(mutual_information(halves, halves), 2), round(mutual_information(halves, np.arange(1000) // 500), 2)
    (1.0, -0.0)
    """
    counts = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(counts, (first, second), 1)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    chance = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1) / (2 * np.log(2) * len(first))
    return float(entropy(rows) + entropy(columns) - entropy(counts.ravel()) - chance)


def _codes(sample: Source, names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Every column as small numbers: one for each value, or for one of this many equal parts of the rows."""
    ranks = []
    for place, name in enumerate(names):
        column = quote_identifier(name)
        ranks.append(f"dense_rank() OVER (ORDER BY {column}) - 1 AS dense{place}")
        ranks.append(f"rank() OVER (ORDER BY {column}) - 1 AS rank{place}")
    found = sample.arrays(f"SELECT {', '.join(ranks)} FROM {sample.table}")
    codes = []
    for place in range(len(names)):
        dense, rank = found[f"dense{place}"], found[f"rank{place}"]
        codes.append(dense if dense.max() < BINS else rank * BINS // len(rank))
    return codes
