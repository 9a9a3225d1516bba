"""N-gram counts: how many rows of a text column contain each frequent n-gram, exactly.

An n-gram has no more rows than any part of it. So whatever falls below the threshold falls with all that contains it;
and in the file an n-gram is the number of its beginning and one more character, and its rows are what is missing to
the least of its two parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import BoolArray, IntArray
from countless.data.encoding.blocks import BLOCK_BYTES, blocks
from countless.data.summaries.integer_packing import packed, unpacked
from countless.errors import ModelFileError

LONGEST_GRAM = 5
MOST_ENTRIES = 400_000  # n-grams that are kept
MOST_BASE = 2_000  # characters of an alphabet whose n-grams fit a code
LEAST_THRESHOLD = 2
ROWS_AT_ONCE = 20_000
DENSE = 1 << 21  # n-grams that there may be, up to which they are counted by place and not sorted
PENDING = 1_000_000  # n-grams of blocks that wait to be merged
LARGEST = 1 << 40  # of the numbers in a file
LEAST_SAMPLED = 10  # rows of a sample that an n-gram must have
DEVIATIONS = 3.0  # standard deviations of a sample's count within which the truth is held to lie


@dataclass(frozen=True, eq=False)
class NGrams:
    """The n-grams of 1 to 5 characters that at least ``threshold`` of the ``rows`` contain, and how many do.

    A row counts once, however often it has the n-gram. ``codes`` has the n-grams of each length in ascending order, as
    numbers in base ``characters``, and ``counts`` their rows. ``nulls`` rows are NULL. ``cut`` rows were cut, and of
    these only what comes before the cut is counted. If only ``sampled`` rows were looked at, the counts are scaled up
    from these.

    >>> symbols = np.array([[0, 1, 0, 1, 3], [1, 0, 3, 3, 3], [1, 2, 1, 3, 3], [5, 3, 3, 3, 3]])  # abab, ba, b?b, NULL
    >>> summary = count_ngrams(symbols, characters=2)
    >>> summary.count([1]), summary.count([1, 0]), summary.count([0, 1])
    (3, 2, None)
    """

    characters: int
    rows: int
    nulls: int
    cut: int
    threshold: int
    codes: tuple[IntArray, ...]
    counts: tuple[IntArray, ...]
    sampled: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every row was looked at."""
        return self.sampled is None

    def most(self, count: float) -> float:
        """The most rows that an n-gram may have, if the summary says ``count``: of a sample, with room for chance.

        >>> NGrams(2, 10_000, 0, 0, 2, (), (), sampled=100).most(900.0)
        2100.0
        """
        if self.sampled is None:
            return count
        seen = count * self.sampled / max(1, self.rows)
        return (seen + DEVIATIONS * (math.sqrt(seen) + 1.0)) * self.rows / max(1, self.sampled)

    def scaled(self, rows: int, nulls: int, cut: int) -> NGrams:
        """This summary, which is that of a random sample, for all of so many ``rows``.

        N-grams that are too rare in the sample are left out: the model knows more about them.
        """
        factor = rows / max(1, self.rows)
        least = max(self.threshold, LEAST_SAMPLED)
        kept = [each >= least for each in self.counts]
        codes = tuple(each[keep] for each, keep in zip(self.codes, kept, strict=True))
        scaled = [np.rint(each[keep] * factor).astype(np.int64) for each, keep in zip(self.counts, kept, strict=True)]
        counts = tuple(np.minimum(each, rows - nulls) for each in scaled)
        threshold = min([round(least * factor), *(int(each.min()) for each in counts if len(each))])
        return NGrams(self.characters, rows, nulls, cut, threshold, codes, counts, self.rows)

    def __len__(self) -> int:
        return sum(map(len, self.codes))

    def count(self, symbols: Sequence[int] | IntArray) -> int | None:
        """The rows that contain these 1 to 5 characters in a row; None if they are fewer than the threshold."""
        code = 0
        for symbol in symbols:
            if not 0 <= symbol < self.characters:
                raise ValueError(f"the symbol {symbol} is no character")
            code = code * self.characters + int(symbol)
        found, there = self.find(len(symbols), np.array([code]))
        return int(found[0]) if there[0] else None

    def find(self, length: int, codes: IntArray) -> tuple[IntArray, BoolArray]:
        """The rows that contain each n-gram, and whether the summary has it; if not, the most rows it may have."""
        if not 1 <= length <= LONGEST_GRAM:
            raise ValueError(f"the n-grams have 1 to {LONGEST_GRAM} characters, not {length}")
        places, there = find_places(self.codes[length - 1], codes)
        found = np.full(len(codes), self.threshold - 1)
        found[there] = self.counts[length - 1][places[there]]
        return found, there

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Compact arrays for the model file."""
        sizes = [len(codes) for codes in self.codes]
        head = [self.characters, self.rows, self.nulls, self.cut, self.threshold, *sizes]
        head += [] if self.sampled is None else [self.sampled]
        ways, missing = [], []
        for length in range(1, LONGEST_GRAM + 1):
            begins, ends, most = self._parts(length)
            ways.append(np.diff(begins * self.characters + ends, prepend=0))
            missing.append(most - self.counts[length - 1])
        return {
            "ngrams.sizes": np.array(head, dtype=np.int64),
            "ngrams.codes": packed(np.concatenate(ways)),
            "ngrams.counts": packed(np.concatenate(missing)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], characters: int) -> NGrams:
        """The summary that :meth:`arrays` wrote, of an alphabet of so many characters."""
        names = ("ngrams.sizes", "ngrams.codes", "ngrams.counts")
        heads = (5 + LONGEST_GRAM, 6 + LONGEST_GRAM)  # the longer one is that of a sample
        kinds = ((np.int64, heads), (np.uint8, None), (np.uint8, None))
        for name, (kind, lengths) in zip(names, kinds, strict=True):
            array = arrays.get(name)
            if array is None or array.dtype != kind or array.ndim != 1 or (lengths and len(array) not in lengths):
                raise _damaged()
        base, rows, nulls, cut, threshold, *rest = map(int, arrays[names[0]])
        sizes, sampled = rest[:LONGEST_GRAM], (rest[LONGEST_GRAM] if len(rest) > LONGEST_GRAM else None)
        if not (
            (sampled is None or 0 < sampled <= rows)
            and base == characters <= MOST_BASE
            and 0 <= rows <= LARGEST
            and min(nulls, cut, *sizes) >= 0
            and nulls + cut <= rows
            and LEAST_THRESHOLD <= threshold <= LARGEST
            and sum(sizes) <= MOST_ENTRIES
        ):
            raise _damaged()
        try:
            ways, missing = (unpacked(arrays[name], sum(sizes)) for name in names[1:])
        except ValueError:
            raise _damaged() from None
        summary = cls(base, rows, nulls, cut, threshold, (), (), sampled)
        for length, end in enumerate(np.cumsum(sizes).tolist(), 1):
            own = slice(end - sizes[length - 1], end)
            summary = summary._longer(ways[own], missing[own])
        return summary

    def _longer(self, ways: IntArray, missing: IntArray) -> NGrams:
        """With the n-grams of the next length, as the file has them."""
        before = self.codes[-1] if self.codes else np.zeros(1, dtype=np.int64)
        if len(ways) and (ways[0] < 0 or ways[1:].min(initial=1) < 1 or ways.max() > LARGEST):
            raise _damaged()
        places = np.cumsum(ways)
        if len(ways) and not places[-1] < len(before) * self.characters:
            raise _damaged()
        begins, ends = np.divmod(places, max(1, self.characters))
        wider = replace(self, codes=(*self.codes, before[begins] * self.characters + ends))
        _, _, most = wider._parts(len(wider.codes))
        counts = most - missing
        if missing.min(initial=0) < 0 or counts.min(initial=self.threshold) < self.threshold:
            raise _damaged()
        return replace(wider, counts=(*self.counts, counts))

    def _parts(self, length: int) -> tuple[IntArray, IntArray, IntArray]:
        """Of each n-gram: the place of its beginning, its last character, and the rows of the rarer of its parts."""
        codes = self.codes[length - 1]
        if length == 1:
            return np.zeros(len(codes), dtype=np.int64), codes, np.full(len(codes), self.rows - self.nulls)
        shorter, counts = self.codes[length - 2], self.counts[length - 2]
        begins, begun = find_places(shorter, codes // max(1, self.characters))
        ends, ended = find_places(shorter, codes % max(1, self.characters ** (length - 1)))
        if not (begun.all() and ended.all()):
            raise _damaged()
        return begins, codes % max(1, self.characters), np.minimum(counts[begins], counts[ends])


def count_ngrams(
    symbols: NDArray[Any], characters: int, tell: Callable[[float], None] = lambda fraction: None
) -> NGrams:
    """The summary of rows of symbols (:class:`.Strings`), of which ``characters`` are characters.

    It keeps the n-grams of at least ``threshold`` rows, which is the least one that leaves no more than MOST_ENTRIES.
    ``tell`` hears how much of the work is done.
    """
    if characters > MOST_BASE:
        raise ValueError(f"an alphabet of {characters:,} characters is too large for n-grams")
    return _counted(symbols, characters, LEAST_THRESHOLD, MOST_ENTRIES, tell)


def every_ngram(symbols: NDArray[Any], characters: int) -> NGrams:
    """The same with all n-grams, however rare and however many they are."""
    return _counted(symbols, characters, 1, None, lambda fraction: None)


def _counted(
    symbols: NDArray[Any], characters: int, threshold: int, most: int | None, tell: Callable[[float], None]
) -> NGrams:
    codes: list[IntArray] = []
    counts: list[IntArray] = []
    at_once = max(1, min(ROWS_AT_ONCE, BLOCK_BYTES // (8 * max(1, symbols.shape[1]))))
    for length in range(1, LONGEST_GRAM + 1):
        merged = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        pending: list[tuple[IntArray, IntArray]] = []
        for place, block in enumerate(blocks(symbols, at_once)):
            if place:
                tell(((length - 1) + place * at_once / len(symbols)) / LONGEST_GRAM)
            found, rows = _distinct(block, characters, length)
            if length > 1:  # an n-gram has no more rows than its parts
                whole = find_places(codes[-1], found // characters)[1]
                whole &= find_places(codes[-1], found % characters ** (length - 1))[1]
                found, rows = found[whole], rows[whole]
            pending.append((found, rows))
            if sum(len(part) for part, _ in pending) > max(PENDING, len(merged[0])):
                merged, pending = merged_counts([merged, *pending]), []
        merged = merged_counts([merged, *pending])
        codes.append(merged[0])
        counts.append(merged[1])
        threshold = threshold if most is None else _threshold(np.concatenate(counts), threshold, most)
        kept = [rows >= threshold for rows in counts]
        codes = [each[keep] for each, keep in zip(codes, kept, strict=True)]
        counts = [each[keep] for each, keep in zip(counts, kept, strict=True)]
    nulls, cut = ends_of_strings(symbols, characters)
    return NGrams(characters, len(symbols), nulls, cut, threshold, tuple(codes), tuple(counts))


def ends_of_strings(symbols: NDArray[Any], characters: int) -> tuple[int, int]:
    """How many rows are NULL, and how many were cut."""
    nulls = cut = 0
    for block in blocks(symbols):
        nulls += int((block[:, 0] == characters + 3).sum())
        cut += int((block[:, -1] == characters + 2).sum())
    return nulls, cut


def _distinct(symbols: NDArray[Any], characters: int, length: int) -> tuple[IntArray, IntArray]:
    """The n-grams of some rows, ascending, and how many of the rows contain each."""
    known = symbols < characters
    width = int(np.flatnonzero(known.any(axis=0)).max(initial=-1)) + 1 - (length - 1)
    if width <= 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    codes = np.zeros((len(symbols), width), dtype=np.int64)
    whole = np.ones(codes.shape, dtype=bool)
    for place in range(length):
        codes *= characters
        codes += symbols[:, place : place + width]
        whole &= known[:, place : place + width]
    codes[~whole] = -1
    codes.sort(axis=1)
    new = codes >= 0
    new[:, 1:] &= codes[:, 1:] != codes[:, :-1]
    if characters**length > DENSE:
        found, rows = np.unique(codes[new], return_counts=True)
        return found, rows.astype(np.int64)
    counts = np.bincount(codes[new])
    found = np.flatnonzero(counts)
    return found, counts[found]


def merged_counts(parts: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """The n-grams of several parts, ascending, and the sum of the counts of each."""
    codes = np.concatenate([part for part, _ in parts])
    counts = np.concatenate([part for _, part in parts])
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], counts[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return codes[first], np.add.reduceat(counts, first) if len(first) else counts


def _threshold(counts: IntArray, least: int, most: int) -> int:
    """The least threshold, from ``least`` on, that no more than ``most`` of the counts reach."""
    if len(counts) <= most:
        return least
    place = len(counts) - most - 1
    return max(least, int(np.partition(counts, place)[place]) + 1)


def find_places(sorted_codes: IntArray, codes: IntArray) -> tuple[IntArray, BoolArray]:
    """Where each of ``codes`` is among the sorted ones, and whether it is."""
    places = np.minimum(np.searchsorted(sorted_codes, codes), max(0, len(sorted_codes) - 1))
    there: BoolArray = sorted_codes[places] == codes if len(sorted_codes) else np.zeros(len(codes), dtype=bool)
    return places, there


def _damaged() -> ModelFileError:
    return ModelFileError("the model file is damaged: its n-grams do not fit together; fit the model again")
