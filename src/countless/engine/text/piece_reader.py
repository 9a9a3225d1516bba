"""Finds the pieces of an automaton, and estimates by counted substrings how many rows contain them.

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

LEAST = 1e-3  # rows; smaller estimates are not distinguished
ONE_ROW = 1.0


@dataclass(frozen=True)
class RowRange:
    """A number of rows by counts: an estimate with bounds, from a chain of ``steps`` counts."""

    rows: float
    least: float
    most: float
    steps: int = 0

    @property
    def counted(self) -> bool:
        """Whether the number is exact."""
        return self.least == self.most

    def complement(self, total: float) -> RowRange:
        """The rest of ``total`` rows."""
        return RowRange(total - self.rows, total - self.most, total - self.least, self.steps)

    def without(self, subset: RowRange) -> RowRange:
        """These rows without a ``subset`` of them."""
        least, most = max(0.0, self.least - subset.most), max(0.0, self.most - subset.least)
        return RowRange(min(max(self.rows - subset.rows, least), most), least, most, max(self.steps, subset.steps))


class ReadPieces(NamedTuple):
    """Pieces of an automaton that its pattern gives, as letters; the beginning and the end are letters too."""

    required: list[Piece]
    excluded: list[Piece]
    exact: bool
    gapped: bool


class Unknown(Enum):
    """The pattern does not say which pieces there are."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


class PieceReader:
    """Finds the pieces of an automaton and counts them, case-insensitively if the automaton is."""

    def __init__(self, strings: Automaton, summary: Substrings) -> None:
        self.summary, self.total = summary, float(summary.rows - summary.nulls)
        self._letters, self._cache = strings.letters, strings.derived
        lower = folding(strings.letters.characters[: summary.characters])
        folds = np.flatnonzero(lower != np.arange(len(lower)))
        self.folded = bool(len(folds)) and bool((strings.next[:, folds] == strings.next[:, lower[folds]]).all())
        self._columns = np.arange(strings.next.shape[1])
        self._strings = strings
        if self.folded:
            self._columns = np.delete(self._columns, folds)
            self._strings = Automaton(strings.letters, strings.next[:, self._columns], strings.accepts)

    def pieces(self, find: Callable[[Automaton], list[Piece] | None]) -> list[Piece] | None:
        """The pieces that ``find`` returns, as symbols. A letter without a symbol is ``-1 - letter``."""
        key = find.__name__
        if key not in self._cache:
            by_pattern = self._by_pattern(find)
            self._cache[key] = find(self._strings) if by_pattern is UNKNOWN else by_pattern
        letters = self._cache[key]
        return None if letters is None else [tuple(map(self._symbol, piece)) for piece in letters]

    def _by_pattern(self, find: Callable[[Automaton], list[Piece] | None]) -> list[Piece] | Unknown | None:
        """The result of ``find``, if it follows from the pattern that the automaton was compiled from."""
        known_pieces, known_of_complement = self.pattern_pieces, self._complement_pieces
        if known_pieces is None and known_of_complement is None:
            return UNKNOWN
        if find is required:
            return [] if known_pieces is None else longest(known_pieces.required)
        if find is sufficient:
            return [] if known_of_complement is None else shortest(known_of_complement.excluded)
        # With few letters, an automaton without a piece may still be a union: of a piece for each other letter.
        no_union = UNKNOWN if len(self._columns) <= MOST_PIECES else None
        if known_of_complement is not None and known_of_complement.exact:
            return no_union if known_of_complement.required else shortest(known_of_complement.excluded)
        if known_pieces is None or not (known_pieces.exact or known_pieces.gapped):
            return UNKNOWN
        pieces = longest(known_pieces.required)
        return pieces if known_pieces.exact and not known_pieces.excluded and len(pieces) == 1 else no_union

    @cached_property
    def pattern_pieces(self) -> ReadPieces | None:
        """The pieces that the automaton's pattern gives."""
        return self._read(self._cache.get(KNOWN))

    @cached_property
    def _complement_pieces(self) -> ReadPieces | None:
        """The pieces that the pattern gives for the complement."""
        return self._read(self._cache.get(KNOWN_OF_OTHERS))

    def _read(self, known: KnownPieces | None) -> ReadPieces | None:
        """Known pieces as letters; None if several letters are possible at an offset, or if a piece is too long."""
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
        columns_at = [[column_of[letter] for letter in letters if letter in column_of] for letters in piece.letters]
        if any(
            len(columns) != 1 for columns in columns_at
        ):  # several letters with equal transitions would be several pieces
            return None
        count = len(self._columns)
        letters = [columns[0] for columns in columns_at]
        return (*([count + 1] if piece.begins else []), *letters, *([count] if piece.ends else []))

    def _symbol(self, letter: int) -> int:
        count = len(self._columns)
        if letter >= count:
            return self.summary.end if letter == count else self.summary.begin
        column = int(self._columns[letter])
        symbol = int(self._letters.symbols[column])
        return symbol if symbol < self.summary.characters else -1 - column

    def exact(self, piece: Piece) -> float | None:
        """The count of a piece; None if it was not counted."""
        return None if min(piece) < 0 else self.summary.count(piece, self.folded)

    def text(self, piece: Piece) -> str:
        """The characters of a piece."""
        letters = {int(symbol): column for column, symbol in reversed(list(enumerate(self._letters.symbols)))}
        return "".join(self._letters.characters[letters[symbol]] for symbol in piece)

    def any_of(self, pieces: Sequence[Piece]) -> RowRange:
        """The rows that contain one of the pieces. No piece is in another."""
        counts = [self.piece(piece) for piece in pieces]
        if len(counts) == 1:
            return counts[0]
        begin, end = self.summary.begin, self.summary.end
        are_disjoint = all(piece[0] == begin for piece in pieces) or all(piece[-1] == end for piece in pieces)
        steps = max(count.steps for count in counts)
        most = min(self.total, sum(count.most for count in counts))
        if are_disjoint:
            rows, least = sum(count.rows for count in counts), sum(count.least for count in counts)
        else:
            none_of_them = reduce(
                lambda product, count: product * (1.0 - count.rows / max(1.0, self.total)), counts, 1.0
            )
            rows, least = self.total * (1.0 - none_of_them), max(count.least for count in counts)
            steps = max(1, steps)
        least = min(least, most)
        return RowRange(min(max(rows, least), most), least, most, steps)

    def bounded(self, complement: PieceReader) -> RowRange:
        """The rows that contain all required pieces, and none that suffices for the ``complement``.

        The estimate takes the pieces as independent, except where one contains another.
        """
        required_pieces, excluded_pieces = self.pieces(required) or [], complement.pieces(sufficient) or []
        excluded_with: dict[Piece, list[Piece]] = {
            piece: [] for piece in required_pieces
        }  # excluded pieces that contain it
        absent: list[RowRange] = []
        for piece in excluded_pieces:
            contained = next((needed for needed in required_pieces if is_part(needed, piece)), None)
            if contained is None:
                absent.append(complement.piece(piece).complement(self.total))
            else:
                excluded_with[contained].append(piece)
        counts = [
            self.piece(piece).without(complement.any_of(longer)) if longer else self.piece(piece)
            for piece, longer in excluded_with.items()
        ]
        counts += absent
        most = min([self.total, *(count.most for count in counts)])
        rows = reduce(lambda product, count: product * count.rows / max(1.0, self.total), counts, self.total)
        least = 0.0
        if (
            self.pattern_pieces is not None and self.pattern_pieces.exact
        ):  # from the largest number of rows that lack a piece
            least = max(0.0, self.total - sum(self.total - count.least for count in counts))
        return RowRange(min(max(rows, least), most), least, most, sum(count.steps + 1 for count in counts))

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
        """A whole string that is not counted: nearly all such strings are in one row."""
        most = self._chained(piece).most
        return RowRange(min(ONE_ROW, most), 0.0, most, 1)

    def _chained(self, piece: Piece) -> RowRange:
        """A piece that is not counted, estimated by its longest counted parts and their overlaps."""
        summary, rows, most = self.summary, self.total, self.total
        if len(piece) <= summary.longest:
            most = float(summary.unseen)
        end = start = steps = 0
        while end < len(piece):
            start = self._first_reaching_beyond(piece, start, end)
            length, count = summary.longest_from(piece, start, self.folded)
            if not length:  # the symbol hardly ever occurs
                rows, end, steps = min(rows, LEAST), start + 1, steps + 1
            else:
                shared = summary.count(piece[start:end], self.folded) if start < end else None
                rows *= count / max(1.0, self.total if shared is None else float(shared))
                most = min(most, summary.most(count))
                end, steps = start + length, steps + 1
        return RowRange(min(max(rows, LEAST), most), 0.0, most, max(1, steps - 1))

    def _first_reaching_beyond(self, piece: Piece, start: int, end: int) -> int:
        """The first offset after ``start`` where a counted part begins that reaches beyond ``end``; or ``end``.

        Parts of a counted part are counted, so a later part reaches at least as far, and binary search works.
        """
        if start == end:
            return end
        low, high = start + 1, end  # no part from start reaches beyond; any part from end does
        while low < high:
            middle = (low + high) // 2
            if self.summary.count(piece[middle : end + 1], self.folded) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _rare(self, piece: Piece, rare: Sequence[int]) -> RowRange:
        """A piece with letters without symbols. It has at most as many rows as these letters and as its other parts."""
        rows = float(self._letters.frequencies[rare].min())
        most = min(self.total, rows)
        part: list[int] = []
        for symbol in (*piece, -1):
            if symbol >= 0:
                part.append(symbol)
                continue
            if part:
                part_rows = self.piece(tuple(part))
                rows, most = rows * part_rows.rows / max(1.0, self.total), min(most, part_rows.most)
            part = []
        return RowRange(min(rows, most), 0.0, most, 1 if most else 0)
