"""Reads the pieces of an automaton, and tells by counted substrings how many rows contain them.

A piece that is not counted is estimated by its longest counted parts: ``P(abcde) = P(abcd) P(bcde) / P(bcd)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import NamedTuple

import numpy as np

from countless.automata.known_pieces import KnownPieces, LetterPiece
from countless.automata.language import KNOWN, KNOWN_OF_OTHERS, Automaton
from countless.cached_property import cached_property
from countless.data.summaries.substring_text import folding
from countless.data.summaries.substrings import Substrings
from countless.engine.text.pieces import (
    MOST_LETTERS,
    MOST_PIECES,
    Piece,
    is_part,
    longest,
    required,
    shortest,
    sufficient,
)

LEAST = 1e-3  # rows; below, estimates are alike
ONE_ROW = 1.0


@dataclass(frozen=True)
class RowRange:
    """How many rows there are, by counts: an estimate, between bounds, made in so many ``steps`` of a chain."""

    rows: float
    least: float
    most: float
    steps: int = 0

    @property
    def counted(self) -> bool:
        """Whether it is no estimate."""
        return self.least == self.most

    def complement(self, total: float) -> RowRange:
        """Those of ``total`` rows that are not among these."""
        return RowRange(total - self.rows, total - self.most, total - self.least, self.steps)

    def without(self, some: RowRange) -> RowRange:
        """These rows without ``some`` that are all among them."""
        least, most = max(0.0, self.least - some.most), max(0.0, self.most - some.least)
        return RowRange(min(max(self.rows - some.rows, least), most), least, most, max(self.steps, some.steps))


class ReadPieces(NamedTuple):
    """Known pieces of an automaton, as letters, with the beginning and the end as letters too."""

    required: list[Piece]
    excluded: list[Piece]
    exact: bool
    gapped: bool


class Unknown(Enum):
    """What no pattern tells."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


class PieceReader:
    """Reads the pieces of an automaton, and counts them; without regard to case, if the automaton has none for it."""

    def __init__(self, strings: Automaton, summary: Substrings) -> None:
        self.summary, self.total = summary, float(summary.rows - summary.nulls)
        self._letters, self._kept = strings.letters, strings.derived
        lower = folding(strings.letters.characters[: summary.characters])
        folds = np.flatnonzero(lower != np.arange(len(lower)))
        self.folded = bool(len(folds)) and bool((strings.next[:, folds] == strings.next[:, lower[folds]]).all())
        self._columns = np.arange(strings.next.shape[1])
        self._strings = strings
        if self.folded:
            self._columns = np.delete(self._columns, folds)
            self._strings = Automaton(strings.letters, strings.next[:, self._columns], strings.accepts)

    def pieces(self, find: Callable[[Automaton], list[Piece] | None]) -> list[Piece] | None:
        """Pieces as symbols; a letter without a symbol is below 0, and tells which one."""
        key = find.__name__
        if key not in self._kept:
            by_pattern = self._by_pattern(find)
            self._kept[key] = find(self._strings) if by_pattern is UNKNOWN else by_pattern
        letters = self._kept[key]
        return None if letters is None else [tuple(map(self._symbol, piece)) for piece in letters]

    def _by_pattern(self, find: Callable[[Automaton], list[Piece] | None]) -> list[Piece] | Unknown | None:
        """What ``find`` would find, if the patterns that the strings were made of tell it."""
        known, others = self.known, self._known_of_others
        if known is None and others is None:
            return UNKNOWN
        if find is required:
            return [] if known is None else longest(known.required)
        if find is sufficient:
            return [] if others is None else shortest(others.excluded)
        # Where letters are few, what has no piece may still be a union: of a piece for each other letter.
        none = UNKNOWN if len(self._columns) <= MOST_PIECES else None
        if others is not None and others.exact:
            return none if others.required else shortest(others.excluded)
        if known is None or not (known.exact or known.gapped):
            return UNKNOWN
        pieces = longest(known.required)
        return pieces if known.exact and not known.excluded and len(pieces) == 1 else none

    @cached_property
    def known(self) -> ReadPieces | None:
        """What the patterns that the strings were made of tell."""
        return self._read(self._kept.get(KNOWN))

    @cached_property
    def _known_of_others(self) -> ReadPieces | None:
        """The same of all other strings."""
        return self._read(self._kept.get(KNOWN_OF_OTHERS))

    def _read(self, known: KnownPieces | None) -> ReadPieces | None:
        """Known pieces with one letter in each place; None if there may be several in one, or if a piece is long."""
        if known is None:
            return None
        column_of = {letter: column for column, letter in enumerate(self._columns.tolist())}
        required, excluded = (
            [self._read_piece(piece, column_of) for piece in pieces] for pieces in (known.required, known.excluded)
        )
        if None in required or None in excluded:
            return None
        return ReadPieces(
            [piece for piece in required if piece], [piece for piece in excluded if piece], known.exact, known.gapped
        )

    def _read_piece(self, piece: LetterPiece, column_of: dict[int, int]) -> Piece | None:
        if len(piece.letters) >= MOST_LETTERS - 2:
            return None
        read = [[column_of[letter] for letter in letters if letter in column_of] for letters in piece.letters]
        if any(len(columns) != 1 for columns in read):  # several letters that are read alike are several pieces
            return None
        count = len(self._columns)
        letters = [columns[0] for columns in read]
        return (*([count + 1] if piece.begins else []), *letters, *([count] if piece.ends else []))

    def _symbol(self, letter: int) -> int:
        count = len(self._columns)
        if letter >= count:
            return self.summary.end if letter == count else self.summary.begin
        column = int(self._columns[letter])
        symbol = int(self._letters.symbols[column])
        return symbol if symbol < self.summary.characters else -1 - column

    def exact(self, piece: Piece) -> float | None:
        """The rows that contain a piece, if it was counted."""
        return None if min(piece) < 0 else self.summary.count(piece, self.folded)

    def text(self, piece: Piece) -> str:
        """The characters of a piece."""
        letters = {int(symbol): column for column, symbol in reversed(list(enumerate(self._letters.symbols)))}
        return "".join(self._letters.characters[letters[symbol]] for symbol in piece)

    def any_of(self, pieces: Sequence[Piece]) -> RowRange:
        """The rows that contain one of the pieces, of which none is in another."""
        parts = [self.piece(piece) for piece in pieces]
        if len(parts) == 1:
            return parts[0]
        begin, end = self.summary.begin, self.summary.end
        apart = all(piece[0] == begin for piece in pieces) or all(piece[-1] == end for piece in pieces)
        steps = max(part.steps for part in parts)
        most = min(self.total, sum(part.most for part in parts))
        if apart:
            rows, least = sum(part.rows for part in parts), sum(part.least for part in parts)
        else:
            none = reduce(lambda left, part: left * (1.0 - part.rows / max(1.0, self.total)), parts, 1.0)
            rows, least = self.total * (1.0 - none), max(part.least for part in parts)
            steps = max(1, steps)
        least = min(least, most)
        return RowRange(min(max(rows, least), most), least, most, steps)

    def bounded(self, other: PieceReader) -> RowRange:
        """The rows that contain all pieces that are required, and none that suffices for the ``other`` strings.

        The estimate is made as if the pieces had nothing to do with each other, but where one contains another.
        """
        wanted, unwanted = self.pieces(required) or [], other.pieces(sufficient) or []
        longer_of: dict[Piece, list[Piece]] = {piece: [] for piece in wanted}  # unwanted pieces that contain it
        apart: list[RowRange] = []
        for piece in unwanted:
            shorter = next((each for each in wanted if is_part(each, piece)), None)
            if shorter is None:
                apart.append(other.piece(piece).complement(self.total))
            else:
                longer_of[shorter].append(piece)
        parts = [
            self.piece(piece).without(other.any_of(longer)) if longer else self.piece(piece)
            for piece, longer in longer_of.items()
        ]
        parts += apart
        most = min([self.total, *(part.most for part in parts)])
        rows = reduce(lambda left, part: left * part.rows / max(1.0, self.total), parts, self.total)
        least = 0.0
        if self.known is not None and self.known.exact:  # rows that lack one of the parts are at most so many
            least = max(0.0, self.total - sum(self.total - part.least for part in parts))
        return RowRange(min(max(rows, least), most), least, most, sum(part.steps + 1 for part in parts))

    def piece(self, piece: Piece) -> RowRange:
        """The rows that contain a piece."""
        summary = self.summary
        rare = [-1 - symbol for symbol in piece if symbol < 0]
        if rare:
            return self._rare(piece, rare)
        count = summary.count(piece, self.folded)
        if count is not None:
            most = summary.most(count)
            return RowRange(count, max(0.0, 2.0 * count - most), min(self.total, most), 0 if summary.is_exact else 1)
        if piece[0] == summary.begin and piece[-1] == summary.end:
            return self._whole(piece)
        return self._chained(piece)

    def _whole(self, piece: Piece) -> RowRange:
        """A whole string that is not counted: of such, nearly all are in one row."""
        most = self._chained(piece).most
        return RowRange(min(ONE_ROW, most), 0.0, most, 1)

    def _chained(self, piece: Piece) -> RowRange:
        """A piece that is not counted, by its longest counted parts and by what these share."""
        summary, rows, most = self.summary, self.total, self.total
        if len(piece) <= summary.longest:
            most = float(summary.unseen)
        end = start = steps = 0
        while end < len(piece):
            start = self._first_beyond(piece, start, end)
            length, count = summary.longest_from(piece, start, self.folded)
            if not length:  # a symbol that is hardly ever there
                rows, end, steps = min(rows, LEAST), start + 1, steps + 1
            else:
                shared = summary.count(piece[start:end], self.folded) if start < end else None
                rows *= count / max(1.0, self.total if shared is None else float(shared))
                most = min(most, summary.most(count))
                end, steps = start + length, steps + 1
        return RowRange(min(max(rows, LEAST), most), 0.0, most, max(1, steps - 1))

    def _first_beyond(self, piece: Piece, start: int, end: int) -> int:
        """The first place from ``start`` on at which a counted part begins that reaches beyond ``end``; or ``end``.

        What a counted part contains is counted: so of two such places the later one's part reaches at least as far.
        """
        if start == end:
            return end
        low, high = start + 1, end  # at start it is known that none does; at end any does
        while low < high:
            middle = (low + high) // 2
            if self.summary.count(piece[middle : end + 1], self.folded) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _rare(self, piece: Piece, rare: Sequence[int]) -> RowRange:
        """A piece with letters that have no symbols: it has no more rows than they occur, and than its other parts."""
        rows = float(self._letters.frequencies[rare].min())
        most = min(self.total, rows)
        part: list[int] = []
        for symbol in (*piece, -1):
            if symbol >= 0:
                part.append(symbol)
                continue
            if part:
                other = self.piece(tuple(part))
                rows, most = rows * other.rows / max(1.0, self.total), min(most, other.most)
            part = []
        return RowRange(min(rows, most), 0.0, most, 1 if most else 0)
