"""N-gram counts within a time limit: of all rows if time permits, else of a random sample, scaled up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import IntArray
from countless.data.summaries.ngrams import NGrams, count_ngrams, ends_of_strings

PILOT_ROWS = 10_000  # of which the speed is measured
SAFETY = 0.8  # of the time is planned for: more rows have more n-grams, which take longer
SEED = 5


def count_ngrams_within(
    symbols: NDArray[Any],
    characters: int,
    seconds: float | None,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[float], None] = lambda fraction: None,
) -> NGrams:
    """The summary of :func:`.count_ngrams`, made in about so many ``seconds``; None: no limit.

    If there is no time for all rows, a random sample of them is counted, and the counts are scaled up: they are
    estimates then, and :attr:`NGrams.is_exact` says so.
    """
    rows = len(symbols)
    if seconds is None or rows <= PILOT_ROWS:
        return count_ngrams(symbols, characters, tell)
    began = clock()
    pilot = count_ngrams(symbols[spread_rows(rows, PILOT_ROWS)], characters)
    spent = clock() - began
    affordable = int(PILOT_ROWS * SAFETY * (seconds - spent) / max(spent, 1e-9))
    if affordable >= rows:
        return count_ngrams(symbols, characters, tell)
    if affordable <= PILOT_ROWS:
        return _scaled(pilot, symbols)
    return _scaled(count_ngrams(symbols[spread_rows(rows, affordable)], characters, tell), symbols)


def spread_rows(rows: int, count: int) -> IntArray:
    """``count`` of so many rows, ascending: a random one of each of ``count`` equal stretches.

    >>> spread_rows(1_000_000, 4) // 250_000
    array([0, 1, 2, 3])
    """
    edges = np.arange(count + 1, dtype=np.int64) * rows // count
    return edges[:-1] + np.random.default_rng(SEED).integers(np.diff(edges))


def _scaled(sample: NGrams, symbols: NDArray[Any]) -> NGrams:
    """The counts of a sample as those of all rows."""
    nulls, cut = ends_of_strings(symbols, sample.characters)
    return sample.scaled(len(symbols), nulls, cut)
