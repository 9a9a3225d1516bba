"""Reading a text column: its alphabet, where its strings are cut, and the symbols of every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from countless.data.source import Source
from countless.data.text import Strings, TextColumn, encode
from countless.data.types import quote_identifier
from countless.errors import DataError

MOST_CHARACTERS = 500  # of an alphabet
RARE_BELOW = 20  # occurrences; fewer in a small table
LONGEST = 256  # by default no more characters of a string are modelled
USUAL_LENGTH = 0.99  # and as many as this share of the strings has
EXACT_ROWS = 1_000_000  # of a larger table, the number of distinct strings is an estimate
ROWS_AT_ONCE = 50_000


def read_text(
    source: Source, name: str, kind: str, length: int | None = None, tell: Callable[[str], None] = lambda stage: None
) -> tuple[TextColumn, Strings]:
    """The column ``name`` with its alphabet, and its rows in the source's order; strings are cut at ``length``."""
    value = f"CAST({quote_identifier(name)} AS VARCHAR)"
    tell(f"reading the alphabet of {name}")
    distinct_of = f"count(DISTINCT {value})" if source.count() <= EXACT_ROWS else f"approx_count_distinct({value})"
    rows, present, distinct, usual, longest = source.rows(
        f"SELECT count(*), count({value}), {distinct_of}, "
        f"quantile_disc(length({value}), {USUAL_LENGTH}), max(length({value})) FROM {source.table}"
    )[0]
    if not present:
        raise DataError(f'the text column "{name}" holds only NULLs: leave it out with --exclude')
    if length is None:
        length = min(LONGEST, max(1, int(usual)))
    length = min(length, max(1, int(longest)))
    counts: Counter[str] = Counter()
    cut = beyond = 0
    for texts in _chunks(source, value):
        for text in texts:
            if text is not None and len(text) > length:
                cut += 1
                beyond += len(text) - length
        counts.update("".join(text[:length] for text in texts if text))
    characters, rare = _alphabet(counts, int(rows))
    column = TextColumn(
        name=name,
        type=kind,
        characters="".join(characters),
        length=length,
        has_null=present < rows,
        distinct=min(int(distinct), int(present)),
        rare=tuple((character, counts[character]) for character in rare),
        frequencies=tuple(counts[character] for character in characters),
        cut=cut,
        beyond=beyond / cut if cut else 0.0,
    )
    tell(f"encoding {name}")
    parts = [encode(column, texts) for texts in _chunks(source, value)]
    strings = Strings(
        np.concatenate([part.symbols for part in parts]), np.concatenate([part.lengths for part in parts])
    )
    if len(strings.symbols) != rows:
        raise DataError("the table changed while it was read: fit again when nothing writes to it")
    return column, strings


def _alphabet(counts: Counter[str], rows: int) -> tuple[list[str], list[str]]:
    """The characters worth a symbol each, and the others; both in the order of code points."""
    limit = max(2, min(RARE_BELOW, rows // 1_000))
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    kept = [character for character in ranked[:MOST_CHARACTERS] if counts[character] >= limit]
    return sorted(kept), sorted(set(ranked) - set(kept))


def _chunks(source: Source, value: str) -> Iterator[list[str | None]]:
    rows = source.rows(f"SELECT {value} FROM {source.table}")
    for first in range(0, len(rows), ROWS_AT_ONCE):
        yield [text for (text,) in rows[first : first + ROWS_AT_ONCE]]
