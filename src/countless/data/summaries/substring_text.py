"""Rows of text as symbols, for counting substrings: BEGIN, the characters, END, and a break after each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.columns.strings.characters import Characters
from countless.data.columns.strings.text import TextColumn
from countless.data.summaries.substrings import BEGIN, END

BREAK = 0xFFFF  # as in the C source: no substring contains it
CACHED_ALPHABETS = 64
AROUND = 3  # symbols of a row besides its characters


@dataclass(frozen=True, eq=False)
class RowTexts:
    """The symbols of rows, one row after the other; ``starts`` has the start of each, and the end of the last."""

    text: NDArray[np.uint16]
    starts: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lists(self) -> list[list[int]]:
        """The symbols of each row."""
        return [self.text[start:end].tolist() for start, end in zip(self.starts[:-1], self.starts[1:], strict=True)]


class SymbolTable:
    """Turns strings into symbols of a text column; characters outside its alphabet are breaks.

    ``folds`` is true if the alphabet has a letter in both cases. Then :meth:`folded` turns symbols of upper case into
    those of lower case.
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
        present = strings.present
        points = strings.points if present.all() else strings.points[np.repeat(present, strings.lengths)]
        lengths = strings.lengths[present]
        starts = np.concatenate([[0], np.cumsum(lengths + AROUND)])
        text = np.full(starts[-1], BREAK, dtype=np.uint16)
        is_character = np.ones(len(text), dtype=bool)
        for around in (starts[:-1], starts[1:] - 2, starts[1:] - 1):
            is_character[around] = False
        text[is_character] = self._symbols.take(points, mode="clip")
        text[starts[:-1]], text[starts[1:] - 2] = self.begin, self.end
        return RowTexts(text, starts.astype(np.uint32))

    def folded(self, rows: RowTexts) -> RowTexts:
        """The rows in lower case."""
        return RowTexts(self._folded[rows.text], rows.starts)

    def by_case(self, rows: RowTexts) -> tuple[RowTexts, RowTexts]:
        """The rows that are in lower case, and the others."""
        if not self.folds or not len(rows):
            return rows, subset(rows, np.zeros(len(rows), dtype=bool))
        has_upper = np.logical_or.reduceat(self._folded[rows.text] != rows.text, rows.starts[:-1].astype(np.int64))
        return subset(rows, ~has_upper), subset(rows, has_upper)


@lru_cache(maxsize=CACHED_ALPHABETS)
def folding(characters: str) -> NDArray[np.int64]:
    """For each character the index of its lower case, if that is in the alphabet too, or else its own index.

    >>> folding("ABab").tolist(), folding("Ab").tolist()
    ([2, 3, 2, 3], [0, 1])
    """
    indexes = {character: index for index, character in enumerate(characters)}
    lower = [indexes.get(character.lower(), index) for index, character in enumerate(characters)]
    folded = np.array(lower, dtype=np.int64)
    folded.setflags(write=False)
    return folded


def subset(rows: RowTexts, mask: NDArray[Any]) -> RowTexts:
    """The rows where ``mask`` is true."""
    if mask.all():
        return rows
    lengths = np.diff(rows.starts).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[mask])])
    return RowTexts(rows.text[np.repeat(mask, lengths)], starts.astype(np.uint32))


def joined(parts: list[RowTexts]) -> RowTexts:
    """The rows of all ``parts``, one after the other."""
    lengths = [np.diff(part.starts.astype(np.int64)) for part in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *lengths]))])
    texts = [part.text for part in parts]
    return RowTexts(np.concatenate([np.zeros(0, dtype=np.uint16), *texts]), starts.astype(np.uint32))
