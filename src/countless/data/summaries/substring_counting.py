"""Counting of the frequent substrings of a text column, in two passes over its strings.

The first pass draws a sample of rows, whose frequent substrings are the candidates. The second pass counts the rows
that contain each candidate, among all rows, or among as many random ones as there is time for.
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
SAMPLE_ROWS, SAMPLE_SYMBOLS = 300_000, 24_000_000  # most rows and symbols of the sample
LEAST_ROWS, LEAST_SHARE = 2, 3e-5  # of the sample that must contain a candidate
CANDIDATES = 2_500_000  # at most
MISSED = math.log(1e-6)  # the chance that a substring with more rows than the bound is no candidate
SAFETY = 0.8  # share of the time that is planned for counting
STREAM = 29  # separates these random numbers from others of the same seed
SHARE = 0.1  # of the column's compressed bytes may be used for its counts and evidence rows together
LEAST_BYTES = 500_000  # that the counts may use in any case
TRIALS = 8  # most thresholds that are tried, to fit the counts into the bytes
NEAR = 0.85  # of the bytes: near enough to stop


@dataclass(frozen=True, eq=False)
class StringScans:
    """Functions that read the strings of a column; ``rows`` is their approximate number.

    ``read`` reads all, in the same order each time. ``draw`` reads a random share of them, given a seed, ``nearby``
    some neighbouring ones, and ``nulls`` counts the NULLs. Without these three, all strings are read instead.
    """

    read: Callable[[], Iterator[Characters]]
    rows: int
    draw: Callable[[float, int], Iterator[Characters]] | None = None
    nearby: Callable[[], Characters | None] | None = None
    nulls: Callable[[], int] | None = None

    @classmethod
    def of(cls, source: Source, column: TextColumn, rows: int) -> StringScans:
        """Scans of the uncut strings of a column of ``source``."""
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
        """A random ``share`` of the strings, approximately."""
        if share >= 1.0:
            yield from self.read()
        elif self.draw is not None:
            yield from self.draw(share, int(rng.integers(2**31)))
        else:
            for strings in self.read():
                yield strings.subset(rng.random(len(strings.lengths)) < share)

    def null_count(self) -> int:
        """The number of strings that are NULL."""
        if self.nulls is not None:
            return self.nulls()
        return sum(int(np.count_nonzero(~strings.present)) for strings in self.read())

    def neighbours(self) -> Characters | None:
        """Some neighbouring strings from the middle; None if there are no strings."""
        if self.nearby is not None:
            return self.nearby()
        middle, rows = None, 0
        for strings in self.read():
            rows += len(strings.lengths)
            if middle is None or rows <= self.rows / 2:
                middle = strings
        return middle


@dataclass(frozen=True, eq=False)
class FirstPass:
    """The result of the first pass.

    Attributes:
        sample: Random rows.
        neighbours: Some neighbouring rows.
        share: The share of all rows that are in the sample.
        compressed: The approximate bytes of all strings, compressed.
    """

    sample: RowTexts
    neighbours: RowTexts
    share: float
    compressed: float


def count_substrings(
    scans: StringScans,
    column: TextColumn,
    *,
    size: int | None = None,
    kept_rows: int = 0,
    seconds: float | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[float], None] = lambda fraction: None,
) -> Substrings:
    """The frequent substrings of a column.

    Args:
        scans: Reads the strings.
        column: The column.
        size: The approximate bytes in the model file; by default :func:`default_size`.
        kept_rows: The number of evidence rows in the model file.
        seconds: The approximate time that counting may take; None: no limit.
        seed: Of the random numbers.
        clock: The time in seconds.
        tell: Receives the fraction of the work that is done.
    """
    start = clock()
    table = SymbolTable(column)
    rng = np.random.default_rng([seed, STREAM])
    first = _first_pass(scans, column, table, rng)
    candidates, cutoff = _candidates(first.sample, table)
    counter = RowCounter(candidates)
    threads = os.cpu_count() or 1
    share = 1.0
    if seconds is not None and scans.rows > len(first.neighbours):
        trial_start = clock()
        counter.add_by_case(table, first.neighbours, np.zeros((3, len(candidates.parents)), dtype=np.int64))
        seconds_per_row = (clock() - trial_start) / max(1, len(first.neighbours)) / threads
        seconds_left = SAFETY * (seconds - (clock() - start))
        share = min(1.0, max(seconds_left / max(seconds_per_row, 1e-9), len(first.sample)) / scans.rows)
    nulls = counted_rows = 0
    with ThreadPoolExecutor(threads) as pool:
        counts = [np.zeros((3, len(candidates.parents)), dtype=np.int64) for _ in range(threads)]
        work: list[Future[None] | None] = [None] * threads
        for batch, strings in enumerate(scans.random_strings(share, rng)):
            worker = batch % threads
            _wait_for(work[worker])
            counted_rows, nulls = counted_rows + len(strings.lengths), nulls + int(np.count_nonzero(~strings.present))
            work[worker] = pool.submit(counter.add_by_case, table, table.rows(strings), counts[worker])
            tell(min(1.0, counted_rows / max(1.0, share * scans.rows)))
        for last in work:
            _wait_for(last)
    lower, mixed, folded = np.sum(counts, axis=0)
    trie = Trie(candidates.parents, candidates.symbols, lower + mixed, np.maximum(folded - mixed, 0))
    trie.counts[0] = counted_rows
    size = default_size(first, column, kept_rows) if size is None else size
    least_threshold = max(LEAST_ROWS, cutoff if first.share >= 1.0 and share >= 1.0 else 1)
    most_missed = math.ceil(unseen_bound(cutoff, first.share) * min(1.0, share))

    def summary_above(threshold: int) -> Substrings:
        unseen = max(threshold - 1, most_missed)
        tree = trie.pruned(threshold).compressed()
        return Substrings(len(column.characters), counted_rows, nulls, threshold, unseen, LONGEST, *tree)

    summary = _fitting(summary_above, trie.counts + trie.extras, least_threshold, size)
    if share >= 1.0:
        return summary
    return summary.scaled(scans.rows, scans.null_count() if column.has_null else 0, counted_rows)


def _wait_for(work: Future[None] | None) -> None:
    """Wait until a batch is counted, and raise its error, if there is one."""
    if work is not None:
        work.result()


def unseen_bound(cutoff: int, share: float) -> float:
    """The most rows that contain a substring if fewer than ``cutoff`` of a random ``share`` of the rows do.

    The chance that more rows contain it is one in a million.

    >>> unseen_bound(5, 1.0), round(unseen_bound(5, 0.1))
    (4.0, 234)
    """
    if share >= 1.0:
        return float(cutoff - 1)
    low, high = float(cutoff), 10.0 * cutoff + 50.0
    for _ in range(60):  # bisection on the mean of a Poisson distribution, by its chance of fewer than the cutoff
        mean = (low + high) / 2
        logs = [count * math.log(mean) - mean - math.lgamma(count + 1.0) for count in range(cutoff)]
        chance = max(logs) + math.log(sum(math.exp(log - max(logs)) for log in logs))
        low, high = (mean, high) if chance > MISSED else (low, mean)
    return high / share


def default_size(first: FirstPass, column: TextColumn, kept_rows: int) -> int:
    """The default bytes for the counts of a column: SHARE of its compressed bytes, minus those of its evidence rows."""
    sample = first.sample.text.astype(np.uint8).tobytes()
    evidence_bytes = kept_rows * len(zlib.compress(sample, 6)) / max(1, len(first.sample))
    return max(LEAST_BYTES, round(SHARE * first.compressed - evidence_bytes))


def _first_pass(scans: StringScans, column: TextColumn, table: SymbolTable, rng: np.random.Generator) -> FirstPass:
    """Draw the sample, and estimate the size of all strings from neighbouring ones."""
    mean = AROUND + sum(column.frequencies) / max(1, scans.rows)
    share = min(1.0, min(SAMPLE_ROWS, SAMPLE_SYMBOLS / mean) / max(1, scans.rows))
    neighbours = scans.neighbours()
    texts = joined([table.rows(strings) for strings in scans.random_strings(share, rng)])
    if neighbours is None:
        return FirstPass(texts, texts, 1.0, 0.0)
    compressed = len(zlib.compress(neighbours.points.astype(np.uint8).tobytes(), 6))
    return FirstPass(texts, table.rows(neighbours), share, compressed * scans.rows / max(1, len(neighbours.lengths)))


def _candidates(sample: RowTexts, table: SymbolTable) -> tuple[Trie, int]:
    """The substrings that are frequent in the sample, as they are or in lower case, and the least number of rows."""
    in_both_cases = [sample, table.folded(table.by_case(sample)[1])] if table.folds else [sample]
    least = max(LEAST_ROWS, round(LEAST_SHARE * len(sample)))
    return frequent(joined(in_both_cases), least, LONGEST, CANDIDATES)


def _fitting(make: Callable[[int], Substrings], counts: IntArray, least_threshold: int, size: int) -> Substrings:
    """The summary that ``make`` returns for the lowest threshold with which it takes at most about ``size`` bytes."""
    summary = make(least_threshold)
    used = _bytes(summary)
    if used <= size:
        return summary
    ranked = np.sort(counts[1:])[::-1]
    ranked = ranked[ranked >= least_threshold]
    if not len(ranked):
        return summary
    best: Substrings | None = None
    low, high = 0, len(ranked)  # this many of the most frequent substrings fit, and this many do not
    guess = len(ranked) * size / used
    for _ in range(TRIALS):
        number = min(max(low, round(guess)), high - 1)
        summary = make(int(ranked[number]) + 1)
        used = _bytes(summary)
        if used > size:
            high = number
        else:
            best, low = summary, number
            if used >= NEAR * size:
                break
        guess = number * NEAR**0.5 * size / max(used, 1)
        if high - low <= 1:
            break
    return make(int(ranked[0]) + 1) if best is None else best


def _bytes(summary: Substrings) -> int:
    """The bytes of a summary in the model file."""
    return sum(array.nbytes for array in summary.arrays().values())
