"""Answers from counted substrings: exact ones, bounds, and estimates that chain the counts of overlapping parts.

An automaton that is a union of pieces is answered by the counts of these. A piece that is not counted is estimated by
its longest counted parts: ``P(abcde) = P(abcd) P(bcde) / P(bcd)``. Of any other automaton, the pieces that it requires,
and those that its complement requires, are bounds and an estimate; without any, the network is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from countless.automata.language import ONLY_PIECE, Automaton, OnlyPiece
from countless.cached_property import cached_property
from countless.data.summaries.substring_text import folding
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.text.pieces import MOST_LETTERS, MOST_PIECES, Piece, required, sufficient, union

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


def refine(strings: Automaton, summary: Substrings, estimate: Callable[[Automaton], Answer]) -> Answer:
    """The share of rows whose string is in ``strings``: by counts, or else by ``estimate``, within bounds of counts."""
    found = rows_of(strings, summary)
    total = float(summary.rows)
    if found.steps < 0:
        answer = estimate(strings)
        rows = min(max(answer.density * total, found.least), found.most)
        return _answer(rows, found, total, answer)
    return _answer(found.rows, found, total, None)


def _answer(rows: float, found: RowRange, total: float, asked: Answer | None) -> Answer:
    return Answer(
        rows / total,
        exact=asked is None or asked.exact,
        particles=1 if asked is None else asked.particles,
        visited=(),
        forward_rows=0 if asked is None else asked.forward_rows,
        sampling_error=None if asked is None else asked.sampling_error,
        counted=found.counted,
        least=found.least / total,
        most=found.most / total,
        steps=max(0, found.steps),
    )


def is_counted(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts tell how many rows there are."""
    return bool(summary.rows) and rows_of(strings, summary).counted


def are_estimated(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts alone tell, exactly or not, so that no network is asked."""
    return bool(summary.rows) and rows_of(strings, summary).steps >= 0


def rows_of(strings: Automaton, summary: Substrings) -> RowRange:
    """How many rows have one of ``strings``; ``steps`` is -1 if the counts only bound it."""
    known: dict[int, RowRange] = strings.derived.setdefault("rows", {})
    if id(summary) not in known:
        known[id(summary)] = _rows_of(strings, summary)
    return known[id(summary)]


def _rows_of(strings: Automaton, summary: Substrings) -> RowRange:
    total = float(summary.rows - summary.nulls)
    if strings.all() or not strings.any():
        rows = total if strings.any() else 0.0
        return RowRange(rows, rows, rows)
    reader = PieceReader(strings, summary)
    found: list[RowRange] = []
    listed, excluded = strings.is_finite, (~strings).is_finite  # the rest of a list is no union of pieces
    if not excluded and (pieces := reader.pieces(union)) is not None:
        found.append(reader.any_of(pieces))
        if found[0].counted or (len(pieces) == 1 and len(strings.letters.characters) > MOST_PIECES):
            return found[0]  # what does not contain it would be a union of a piece for each other letter
    other = PieceReader(~strings, summary)
    if not (listed and found) and (others := other.pieces(union)) is not None:
        found.append(other.any_of(others).complement(total))
    if found:
        return min(found, key=lambda each: each.most - each.least)
    own, rest = reader.bounded(other), other.bounded(reader)
    least, most = max(0.0, total - rest.most), own.most
    if own.most < total:
        rows, steps = own.rows, own.steps
    elif rest.most < total:
        rows, steps = total - rest.rows, rest.steps
    else:
        rows, steps = total, -1
    return RowRange(min(max(rows, least), most), least, max(least, most), steps)


@dataclass(frozen=True)
class KnownPart:
    """Text that all strings of an automaton contain; with ``begins`` or ``ends`` they begin or end with it.

    ``rows`` contain it; if that count was scaled up from a sample, ``most`` is its upper bound.
    """

    text: str
    begins: bool
    ends: bool
    rows: float
    most: float


def smallest_part(strings: Automaton, summary: Substrings, alone: bool) -> KnownPart | None:
    """Of the counted text that all ``strings`` contain, that of the fewest rows; None if there is none.

    Strings without regard to case have none. If nothing else is asked (``alone``), a pattern that is a union of pieces
    has none either: these are counted.
    """
    reader = PieceReader(strings, summary)
    if reader.folded or (alone and reader.pieces(union) is not None):
        return None
    counts = {piece: reader.exact(piece) for piece in reader.pieces(required) or []}
    known = {piece: rows for piece, rows in counts.items() if rows is not None}
    if not known:
        return None
    piece = min(known, key=lambda each: known[each])
    begins, ends = piece[0] == summary.begin, piece[-1] == summary.end
    text = reader.text(piece[begins : len(piece) - ends])
    return KnownPart(text, begins, ends, known[piece], summary.most(known[piece])) if text else None


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
            only = self._only_piece if find in (union, required) else None
            self._kept[key] = find(self._strings) if only is None else [only]
        found = self._kept[key]
        return None if found is None else [tuple(map(self._symbol, piece)) for piece in found]

    @cached_property
    def _only_piece(self) -> Piece | None:
        """The piece that all strings have, and no others, if it is known from the pattern."""
        known: OnlyPiece | None = self._kept.get(ONLY_PIECE)
        if known is None or len(known.letters) >= MOST_LETTERS - 2:
            return None
        place = {letter: column for column, letter in enumerate(self._columns.tolist())}
        read = [[place[letter] for letter in letters if letter in place] for letters in known.letters]
        if any(len(columns) != 1 for columns in read):  # several letters that are read alike are several pieces
            return None
        count = len(place)
        letters = [columns[0] for columns in read]
        return (*([count + 1] if known.begins else []), *letters, *([count] if known.ends else []))

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
        letters = {int(symbol): place for place, symbol in reversed(list(enumerate(self._letters.symbols)))}
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

        The estimate is made as if the pieces had nothing to do with each other.
        """
        parts = [self.piece(piece) for piece in self.pieces(required) or []]
        parts += [other.piece(piece).complement(self.total) for piece in other.pieces(sufficient) or []]
        most = min([self.total, *(part.most for part in parts)])
        rows = reduce(lambda left, part: left * part.rows / max(1.0, self.total), parts, self.total)
        return RowRange(min(rows, most), 0.0, most, sum(part.steps + 1 for part in parts))

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
