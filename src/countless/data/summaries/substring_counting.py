"""Counting of the frequent substrings of a text column, in two passes over its strings.

The first pass draws some rows, whose frequent substrings are the candidates. The second counts the rows that contain
each candidate: all rows, or as many random ones as there is time for.
"""

from __future__ import annotations

import math
import os
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from countless.arrays import IntArray
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import TEXT, sql_value
from countless.data.sources.arrow_batches import rows_at_once
from countless.data.sources.source import Source
from countless.data.summaries.substring_growth import RowCounter, frequent
from countless.data.summaries.substring_text import AROUND, RowTexts, SymbolTable, joined
from countless.data.summaries.substring_tries import Trie
from countless.data.summaries.substrings import Substrings

LONGEST = 48  # symbols of a substring, anchors included
SAMPLE_ROWS, SAMPLE_SYMBOLS = 300_000, 24_000_000  # of which the candidates are taken, at most
LEAST_ROWS, LEAST_SHARE = 2, 3e-5  # of the sample that a candidate must be in
CANDIDATES = 2_500_000  # at most
MISSED = math.log(1e-6)  # the chance that a substring above the bound is no candidate
SAFETY = 0.8  # of the time is planned for
STREAM = 29  # keeps the random numbers apart from others of the seed
SHARE, LEAST_BYTES = 0.1, 500_000  # of the column's bytes, compressed, for all that is kept of it; of counts at least
TRIALS = 8  # thresholds that are tried to fit the bytes
NEAR = 0.85  # of the bytes: near enough


@dataclass(frozen=True, eq=False)
class StringScans:
    """Reads the strings of a column, in the same order each time; ``rows`` is about how many there are.

    ``draw`` reads a random share of them, with a seed, ``nearby`` some neighbouring ones, and ``nulls`` counts the
    NULLs, all without reading every string. Where these are missing, every string is read instead.
    """

    read: Callable[[], Iterator[Characters]]
    rows: int
    draw: Callable[[float, int], Iterator[Characters]] | None = None
    nearby: Callable[[], Characters | None] | None = None
    nulls: Callable[[], int] | None = None

    @classmethod
    def of(cls, source: Source, column: TextColumn, rows: int) -> StringScans:
        """The strings of a column of ``source``, whole."""
        value, batch = sql_value(column.name, TEXT), rows_at_once(8 * (column.length + AROUND))

        def read(table: str = source.table) -> Iterator[Characters]:
            for (strings,) in source.batches(f"SELECT {value} FROM {table}", batch):
                yield Characters.of(strings)

        def draw(share: float, seed: int) -> Iterator[Characters]:
            return read(f"({source.random_share(share, seed, column.name)})")

        def nearby() -> Characters | None:
            return next(read(f"{source.table} LIMIT {batch} OFFSET {max(0, rows // 2 - batch)}"), None)

        def nulls() -> int:
            return int(source.rows(f"SELECT count(*) - count({value}) FROM {source.table}")[0][0])

        return cls(read, rows, draw, nearby, nulls)

    def random_strings(self, share: float, rng: np.random.Generator) -> Iterator[Characters]:
        """About this share of the strings, at random."""
        if share >= 1.0:
            yield from self.read()
        elif self.draw is not None:
            yield from self.draw(share, int(rng.integers(2**31)))
        else:
            for strings in self.read():
                yield strings.subset(rng.random(len(strings.lengths)) < share)

    def null_count(self) -> int:
        """How many strings are NULL."""
        if self.nulls is not None:
            return self.nulls()
        return sum(int(np.count_nonzero(~strings.present)) for strings in self.read())

    def neighbours(self) -> Characters | None:
        """Some neighbouring strings from the middle; None if there are no strings."""
        if self.nearby is not None:
            return self.nearby()
        some, rows = None, 0
        for strings in self.read():
            rows += len(strings.lengths)
            if some is None or rows <= self.rows / 2:
                some = strings
        return some


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass has found: random rows, some rows in a row, and how many bytes all have, compressed."""

    sample: RowTexts
    some: RowTexts
    share: float
    compressed: float


def count_substrings(
    passes: StringScans,
    column: TextColumn,
    *,
    size: int | None = None,
    kept_rows: int = 0,
    seconds: float | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[float], None] = lambda fraction: None,
) -> Substrings:
    """The frequent substrings of a column, in about this many ``seconds``; None: no limit.

    They take about ``size`` bytes of the model file, by default a tenth of what the column takes, compressed, without
    the ``kept_rows`` evidence rows, but at least LEAST_BYTES. ``tell`` receives the share of the work that is done.
    """
    began = clock()
    table = SymbolTable(column)
    rng = np.random.default_rng([seed, STREAM])
    drawn = _drawn(passes, column, table, rng)
    candidates, cutoff = _candidates(drawn.sample, table)
    counter = RowCounter(candidates)
    threads = os.cpu_count() or 1
    share = 1.0
    if seconds is not None and passes.rows > len(drawn.some):
        started = clock()
        counter.add_by_case(table, drawn.some, np.zeros((3, len(candidates.parents)), dtype=np.int64))
        each = (clock() - started) / max(1, len(drawn.some)) / threads
        left = SAFETY * (seconds - (clock() - began))
        share = min(1.0, max(left / max(each, 1e-9), len(drawn.sample)) / passes.rows)
    nulls = looked_at = 0
    with ThreadPoolExecutor(threads) as pool:
        counts = [np.zeros((3, len(candidates.parents)), dtype=np.int64) for _ in range(threads)]
        work: list[Future[None] | None] = [None] * threads
        for turn, strings in enumerate(passes.random_strings(share, rng)):
            worker = turn % threads
            _wait_for(work[worker])
            looked_at, nulls = looked_at + len(strings.lengths), nulls + int(np.count_nonzero(~strings.present))
            work[worker] = pool.submit(counter.add_by_case, table, table.rows(strings), counts[worker])
            tell(min(1.0, looked_at / max(1.0, share * passes.rows)))
        for last in work:
            _wait_for(last)
    low, plain, folded = np.sum(counts, axis=0)
    trie = Trie(candidates.parents, candidates.symbols, low + plain, np.maximum(folded - plain, 0))
    trie.counts[0] = looked_at
    size = default_size(drawn, column, kept_rows) if size is None else size
    threshold = max(LEAST_ROWS, cutoff if drawn.share >= 1.0 and share >= 1.0 else 1)
    missed = unseen_bound(cutoff, drawn.share) * min(1.0, share)

    def kept(least: int) -> Substrings:
        unseen = max(least - 1, math.ceil(missed))
        tree = trie.pruned(least).compressed()
        return Substrings(len(column.characters), looked_at, nulls, least, unseen, LONGEST, *tree)

    found = _fitting(kept, trie.counts + trie.extras, threshold, size)
    return (
        found if share >= 1.0 else found.scaled(passes.rows, passes.null_count() if column.has_null else 0, looked_at)
    )


def _wait_for(work: Future[None] | None) -> None:
    """Wait until a batch is counted; its error, if there is one, is raised."""
    if work is not None:
        work.result()


def unseen_bound(cutoff: int, share: float) -> float:
    """The most rows of a substring of which fewer than ``cutoff`` were in a random ``share`` of the rows.

    It has more with a chance of one in a million.

    >>> unseen_bound(5, 1.0), round(unseen_bound(5, 0.1))
    (4.0, 234)
    """
    if share >= 1.0:
        return float(cutoff - 1)
    low, high = float(cutoff), 10.0 * cutoff + 50.0
    for _ in range(60):  # of the Poisson distribution with this mean, the chance of fewer than the cutoff
        mean = (low + high) / 2
        logs = [place * math.log(mean) - mean - math.lgamma(place + 1.0) for place in range(cutoff)]
        chance = max(logs) + math.log(sum(math.exp(each - max(logs)) for each in logs))
        low, high = (mean, high) if chance > MISSED else (low, mean)
    return high / share


def default_size(drawn: FirstPass, column: TextColumn, kept_rows: int) -> int:
    """The bytes that the counts of a column may take, if nothing else is said."""
    sample = drawn.sample.text.astype(np.uint8).tobytes()
    evidence = kept_rows * len(zlib.compress(sample, 6)) / max(1, len(drawn.sample))
    return max(LEAST_BYTES, round(SHARE * drawn.compressed - evidence))


def _drawn(passes: StringScans, column: TextColumn, table: SymbolTable, rng: np.random.Generator) -> FirstPass:
    """The first pass."""
    mean = AROUND + sum(column.frequencies) / max(1, passes.rows)
    share = min(1.0, min(SAMPLE_ROWS, SAMPLE_SYMBOLS / mean) / max(1, passes.rows))
    some = passes.neighbours()
    texts = joined([table.rows(strings) for strings in passes.random_strings(share, rng)])
    if some is None:
        return FirstPass(texts, texts, 1.0, 0.0)
    packed = len(zlib.compress(some.points.astype(np.uint8).tobytes(), 6))
    return FirstPass(texts, table.rows(some), share, packed * passes.rows / max(1, len(some.lengths)))


def _candidates(sample: RowTexts, table: SymbolTable) -> tuple[Trie, int]:
    """The substrings that are frequent in some rows, in any case, and in how many of these at least."""
    both = [sample, table.folded(table.by_case(sample)[1])] if table.folds else [sample]
    least = max(LEAST_ROWS, round(LEAST_SHARE * len(sample)))
    return frequent(joined(both), least, LONGEST, CANDIDATES)


def _fitting(make: Callable[[int], Substrings], counts: IntArray, threshold: int, size: int) -> Substrings:
    """The summary with the least threshold whose arrays take no more than ``size`` bytes, about."""
    found = make(threshold)
    taken = _bytes(found)
    if taken <= size:
        return found
    ranked = np.sort(counts[1:])[::-1]
    ranked = ranked[ranked >= threshold]
    if not len(ranked):
        return found
    best: Substrings | None = None
    low, high = 0, len(ranked)  # of the frequent substrings, this many fit, and this many do not
    guess = len(ranked) * size / taken
    for _ in range(TRIALS):
        place = min(max(low, round(guess)), high - 1)
        found = make(int(ranked[place]) + 1)
        taken = _bytes(found)
        if taken > size:
            high = place
        else:
            best, low = found, place
            if taken >= NEAR * size:
                break
        guess = place * NEAR**0.5 * size / max(taken, 1)
        if high - low <= 1:
            break
    return make(int(ranked[0]) + 1) if best is None else best


def _bytes(found: Substrings) -> int:
    return sum(array.nbytes for array in found.arrays().values())
