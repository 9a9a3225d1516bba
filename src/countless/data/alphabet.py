"""Reading a text column: its alphabet, and where its strings are cut."""

from __future__ import annotations

import numpy as np

from countless.data.characters import Characters
from countless.data.source import Source
from countless.data.text import TextColumn
from countless.data.types import quote_identifier
from countless.errors import DataError

MOST_CHARACTERS = 500  # of an alphabet
RARE_BELOW = 20  # occurrences; fewer in a small table
LONGEST = 256  # by default no more characters of a string are modelled
USUAL_LENGTH = 0.99  # and as many as this share of the strings has
EXACT_ROWS = 1_000_000  # of a larger table, the number of distinct strings is an estimate
POINTS = 0x110000  # code points that there are


def read_text(source: Source, name: str, kind: str, rows: int, length: int | None = None) -> TextColumn:
    """The column ``name`` of a table of so many rows, with its alphabet; strings are cut at ``length``."""
    value = f"CAST({quote_identifier(name)} AS VARCHAR)"
    distinct_of = f"count(DISTINCT {value})" if rows <= EXACT_ROWS else f"approx_count_distinct({value})"
    ((present, distinct),) = source.rows(f"SELECT count({value}), {distinct_of} FROM {source.table}")
    if not present:
        raise DataError(f'the text column "{name}" holds only NULLs: leave it out with --exclude')
    usual, longest = _lengths(source, value)
    if length is None:
        length = min(LONGEST, max(1, usual))
    length = min(length, max(1, longest))
    counts = np.zeros(POINTS, dtype=np.int64)
    cut = beyond = 0
    done = 0
    for (strings,) in source.batches(f"SELECT {value} FROM {source.table}"):
        found = Characters.of(strings)
        over = found.lengths[found.lengths > length] - length
        cut, beyond = cut + len(over), beyond + int(over.sum())
        own = np.bincount(found.cut(length), minlength=1)
        counts[: len(own)] += own
        done += len(strings)
        if source.watch is not None:
            source.watch.at(done / rows)
    characters, rare = _alphabet({chr(point): int(counts[point]) for point in np.flatnonzero(counts)}, rows)
    return TextColumn(
        name=name,
        type=kind,
        characters="".join(characters),
        length=length,
        has_null=present < rows,
        distinct=min(int(distinct), int(present)),
        rare=tuple((character, int(counts[ord(character)])) for character in rare),
        frequencies=tuple(int(counts[ord(character)]) for character in characters),
        cut=cut,
        beyond=beyond / cut if cut else 0.0,
    )


def _lengths(source: Source, value: str) -> tuple[int, int]:
    """The length that USUAL_LENGTH of the strings do not exceed, and that of the longest."""
    counted = f"SELECT length({value}), count(*) FROM {source.table} WHERE {value} IS NOT NULL GROUP BY 1 ORDER BY 1"
    lengths, counts = (np.array(numbers, dtype=np.int64) for numbers in zip(*source.rows(counted), strict=True))
    below = np.cumsum(counts)
    return int(lengths[np.searchsorted(below, USUAL_LENGTH * below[-1])]), int(lengths[-1])


def _alphabet(counts: dict[str, int], rows: int) -> tuple[list[str], list[str]]:
    """The characters worth a symbol each, and the others; both in the order of code points."""
    limit = max(2, min(RARE_BELOW, rows // 1_000))
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    kept = [character for character in ranked[:MOST_CHARACTERS] if counts[character] >= limit]
    return sorted(kept), sorted(set(ranked) - set(kept))
