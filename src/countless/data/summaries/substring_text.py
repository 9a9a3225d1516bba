"""Rows of text as symbols for counting substrings: each row begins and ends with an anchor, and then has a break."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.summaries.substrings import BEGIN, END

BREAK = 0xFFFF  # as in the C source: substrings do not go over it
REMEMBERED = 64  # alphabets
AROUND = 3  # symbols around the characters of a row


@dataclass(frozen=True, eq=False)
class RowTexts:
    """The symbols of rows, one row after the other. Each begins where ``starts`` says, which has the last end too."""

    text: NDArray[np.uint16]
    starts: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lists(self) -> list[list[int]]:
        """The symbols of each row."""
        return [self.text[start:end].tolist() for start, end in zip(self.starts[:-1], self.starts[1:], strict=True)]


class SymbolTable:
    """Turns strings into symbols of a text column; characters outside its alphabet are breaks.

    ``folds`` says whether case makes a difference; then :meth:`folded` turns the symbols of upper case into those of
    lower case.
    """

    def __init__(self, column: TextColumn) -> None:
        count = len(column.characters)
        self.begin, self.end = count + BEGIN, count + END
        points = np.array([ord(character) for character in column.characters], dtype=np.int64)
        self._symbols = np.full(max(256, int(points.max(initial=0)) + 2), BREAK, dtype=np.uint16)
        self._symbols[points] = np.arange(count)
        self.lower = folding(column.characters)
        self._folded = np.arange(BREAK + 1, dtype=np.uint16)
        self._folded[:count] = self.lower
        self.folds = bool((self.lower != np.arange(count)).any())

    def rows(self, strings: Characters) -> RowTexts:
        """The rows that are not NULL."""
        kept = strings.present
        points = strings.points if kept.all() else strings.points[np.repeat(kept, strings.lengths)]
        lengths = strings.lengths[kept]
        starts = np.concatenate([[0], np.cumsum(lengths + AROUND)])
        text = np.full(starts[-1], BREAK, dtype=np.uint16)
        inside = np.ones(len(text), dtype=bool)
        for place in (starts[:-1], starts[1:] - 2, starts[1:] - 1):
            inside[place] = False
        text[inside] = self._symbols.take(points, mode="clip")
        text[starts[:-1]], text[starts[1:] - 2] = self.begin, self.end
        return RowTexts(text, starts.astype(np.uint32))

    def folded(self, rows: RowTexts) -> RowTexts:
        """The same rows in lower case."""
        return RowTexts(self._folded[rows.text], rows.starts)

    def by_case(self, rows: RowTexts) -> tuple[RowTexts, RowTexts]:
        """The rows that are in lower case, and the others."""
        if not self.folds or not len(rows):
            return rows, some_rows(rows, np.zeros(len(rows), dtype=bool))
        upper = np.logical_or.reduceat(self._folded[rows.text] != rows.text, rows.starts[:-1].astype(np.int64))
        return some_rows(rows, ~upper), some_rows(rows, upper)


@lru_cache(maxsize=REMEMBERED)
def folding(characters: str) -> NDArray[np.int64]:
    """Of each character the place of the same in lower case, if that is a character of the alphabet too.

    >>> folding("ABab").tolist(), folding("Ab").tolist()
    ([2, 3, 2, 3], [0, 1])
    """
    places = {character: index for index, character in enumerate(characters)}
    found = np.array([places.get(each.lower(), index) for index, each in enumerate(characters)], dtype=np.int64)
    found.setflags(write=False)
    return found


def some_rows(rows: RowTexts, kept: NDArray[Any]) -> RowTexts:
    """Some of the rows."""
    if kept.all():
        return rows
    lengths = np.diff(rows.starts).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[kept])])
    return RowTexts(rows.text[np.repeat(kept, lengths)], starts.astype(np.uint32))


def joined(parts: list[RowTexts]) -> RowTexts:
    """All rows of several lists."""
    lengths = [np.diff(part.starts.astype(np.int64)) for part in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *lengths]))])
    texts = [part.text for part in parts]
    return RowTexts(np.concatenate([np.zeros(0, dtype=np.uint16), *texts]), starts.astype(np.uint32))
