"""Discovery of a text column's alphabet and of the length at which its strings are cut."""

from __future__ import annotations

import numpy as np

from countless.data.columns.names import exclude_option
from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import TEXT, sql_value
from countless.data.sources.arrow_batches import Vector, rows_at_once
from countless.data.sources.source import Source
from countless.errors import DataError

MOST_CHARACTERS = 500  # of an alphabet
RARE_BELOW = 20  # occurrences of a character; the limit is lower in a small table
LONGEST = 256  # characters of a string that are modelled, at most, by default
USUAL_LENGTH = 0.99  # of the strings are no longer than where strings are cut by default
EXACT_DISTINCT = 1_000_000  # distinct strings that are counted exactly; many more are estimated
POINTS = 0x110000  # number of code points


def read_text(source: Source, name: str, kind: str, rows: int, length: int | None = None) -> TextColumn:
    """The text column ``name`` of a table of ``rows`` rows, with its alphabet; strings are cut at ``length``."""
    value = sql_value(name, TEXT)
    sql = f"SELECT length({value}), count(*) FROM {source.table} WHERE {value} IS NOT NULL GROUP BY 1"
    lengths = dict(source.rows(sql))
    if not lengths:
        raise DataError(f'the text column "{name}" holds only NULLs: leave it out with {exclude_option(name)}')
    distinct, estimated = _count_distinct(source, value, rows)
    length = length_of(lengths, length)
    tally = Tally(length)
    done = 0
    for (strings,) in source.batches(f"SELECT {value} FROM {source.table}", rows_at_once(8 * length)):
        tally.add(strings)
        done += len(strings)
        if source.watch is not None:
            source.watch.at(done / rows)
    return tally.column(name, kind, rows, sum(lengths.values()), distinct, estimated)


def _count_distinct(source: Source, value: str, rows: int) -> tuple[int, bool]:
    """The number of distinct strings that ``value``, an SQL expression, has, and whether that is an estimate.

    Counting many more than EXACT_DISTINCT takes much memory. Then only about EXACT_DISTINCT of them are counted, chosen
    by their hashes, and the count is scaled up: the estimate errs by one part in a thousand.
    """
    one_in = 1
    if rows > EXACT_DISTINCT:
        ((about,),) = source.rows(f"SELECT approx_count_distinct({value}) FROM {source.table}")
        one_in = max(1, round(about / EXACT_DISTINCT))
    where = f" WHERE hash({value}) % {one_in} = 0" if one_in > 1 else ""
    ((distinct,),) = source.rows(f"SELECT count(DISTINCT {value}) FROM {source.table}{where}")
    return int(distinct) * one_in, one_in > 1


def length_of(counted: dict[int, int], most: int | None) -> int:
    """The length at which to cut strings, given the number of each length: ``most``, or where USUAL_LENGTH have ended.

    >>> length_of({5: 990, 80: 10}, None), length_of({5: 990, 80: 10}, 20), length_of({5: 1}, 20)
    (5, 20, 5)
    """
    lengths = np.array(sorted(counted), dtype=np.int64)
    below = np.cumsum([counted[length] for length in lengths.tolist()])
    if most is None:
        most = min(LONGEST, max(1, int(lengths[np.searchsorted(below, USUAL_LENGTH * below[-1])])))
    return min(most, max(1, int(lengths[-1])))


class Tally:
    """Counts the characters of strings, including those after ``length``, where strings are cut."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.counts = np.zeros(POINTS, dtype=np.int64)  # of every code point
        self.cut = self.beyond = 0  # strings that are cut, and characters that are cut off

    def add(self, strings: Vector) -> None:
        """Count the characters of ``strings``."""
        characters = Characters.of(strings)
        excess = characters.lengths[characters.lengths > self.length] - self.length
        self.cut, self.beyond = self.cut + len(excess), self.beyond + int(excess.sum())
        counts = np.bincount(characters.points, minlength=1)
        self.counts[: len(counts)] += counts

    def column(
        self, name: str, kind: str, rows: int, present: int, distinct: int, estimated: bool = False
    ) -> TextColumn:
        """The column with these strings; ``present`` of the ``rows`` rows are not NULL, ``distinct`` strings differ."""
        counts = {chr(point): int(self.counts[point]) for point in np.flatnonzero(self.counts)}
        characters, rare = _alphabet(counts, rows)
        return TextColumn(
            name=name,
            type=kind,
            characters="".join(characters),
            length=self.length,
            has_null=present < rows,
            distinct=min(distinct, present),
            estimated=estimated,
            rare=tuple((character, counts[character]) for character in rare),
            frequencies=tuple(counts[character] for character in characters),
            cut=self.cut,
            beyond=self.beyond / self.cut if self.cut else 0.0,
        )


def _alphabet(counts: dict[str, int], rows: int) -> tuple[list[str], list[str]]:
    """The characters that get a symbol each, and the rare ones; both in the order of code points."""
    limit = max(2, min(RARE_BELOW, rows // 1_000))
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    frequent = [character for character in ranked[:MOST_CHARACTERS] if counts[character] >= limit]
    return sorted(frequent), sorted(set(ranked) - set(frequent))
