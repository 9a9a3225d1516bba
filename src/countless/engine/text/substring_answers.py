"""Answers from counted substrings: exact ones, bounds, and estimates.

An automaton that is a union of pieces is answered by the counts of these. Of any other automaton, the pieces that it
requires, and those that its complement requires, are bounds and an estimate; without any, the network is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from countless.automata.language import Automaton
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.text.piece_reader import PieceReader, RowRange
from countless.engine.text.pieces import MOST_PIECES, required, union


def refine(strings: Automaton, summary: Substrings, estimate: Callable[[Automaton], Answer]) -> Answer:
    """The share of rows whose string is in ``strings``: by counts, or else by ``estimate``, within bounds of counts."""
    counts = rows_of(strings, summary)
    total = float(summary.rows)
    if counts.steps < 0:
        answer = estimate(strings)
        rows = min(max(answer.density * total, counts.least), counts.most)
        return _answer(rows, counts, total, answer)
    return _answer(counts.rows, counts, total, None)


def _answer(rows: float, counts: RowRange, total: float, of_network: Answer | None) -> Answer:
    return Answer(
        rows / total,
        exact=of_network is None or of_network.exact,
        particles=1 if of_network is None else of_network.particles,
        visited=(),
        forward_rows=0 if of_network is None else of_network.forward_rows,
        sampling_error=None if of_network is None else of_network.sampling_error,
        counted=counts.counted,
        least=counts.least / total,
        most=counts.most / total,
        steps=max(0, counts.steps),
    )


def is_counted(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts tell how many rows there are."""
    return bool(summary.rows) and rows_of(strings, summary).counted


def are_estimated(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts alone tell, exactly or not, so that no network is asked."""
    return bool(summary.rows) and rows_of(strings, summary).steps >= 0


def rows_of(strings: Automaton, summary: Substrings) -> RowRange:
    """How many rows have one of ``strings``; ``steps`` is -1 if the counts only bound it."""
    by_summary: dict[int, RowRange] = strings.derived.setdefault("rows", {})
    if id(summary) not in by_summary:
        by_summary[id(summary)] = _rows_of(strings, summary)
    return by_summary[id(summary)]


def _rows_of(strings: Automaton, summary: Substrings) -> RowRange:
    total = float(summary.rows - summary.nulls)
    if strings.all() or not strings.any():
        rows = total if strings.any() else 0.0
        return RowRange(rows, rows, rows)
    reader = PieceReader(strings, summary)
    by_union: list[RowRange] = []
    listed, excluded = strings.is_finite, (~strings).is_finite  # the rest of a list is no union of pieces
    if not excluded and (pieces := reader.pieces(union)) is not None:
        by_union.append(reader.any_of(pieces))
        if by_union[0].counted or (len(pieces) == 1 and len(strings.letters.characters) > MOST_PIECES):
            return by_union[0]  # what does not contain it would be a union of a piece for each other letter
    other = PieceReader(~strings, summary)
    if not (listed and by_union) and (others := other.pieces(union)) is not None:
        by_union.append(other.any_of(others).complement(total))
    if by_union:
        return min(by_union, key=lambda each: each.most - each.least)
    own, rest = reader.bounded(other), other.bounded(reader)
    least, most = max(own.least, total - rest.most), min(own.most, total - rest.least)
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
    rows_of_piece = {piece: rows for piece, rows in counts.items() if rows is not None}
    if not rows_of_piece:
        return None
    piece = min(rows_of_piece, key=rows_of_piece.__getitem__)
    begins, ends = piece[0] == summary.begin, piece[-1] == summary.end
    text = reader.text(piece[begins : len(piece) - ends])
    return KnownPart(text, begins, ends, rows_of_piece[piece], summary.most(rows_of_piece[piece])) if text else None
