"""Answers from counted substrings: exact ones, bounds, and estimates.

If an automaton accepts exactly the strings with one of some pieces, the counts of the pieces are the answer. For any
other automaton, the pieces that it or its complement requires give bounds and an estimate. Without such pieces the
network is asked.
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
    """The share of rows whose string is in ``strings``: by counts, or else by ``estimate`` within bounds by counts."""
    counts = rows_of(strings, summary)
    total = float(summary.rows)
    if counts.steps < 0:
        answer = estimate(strings)
        rows = min(max(answer.density * total, counts.least), counts.most)
        return _answer(rows, counts, total, answer)
    return _answer(counts.rows, counts, total, None)


def _answer(rows: float, counts: RowRange, total: float, network_answer: Answer | None) -> Answer:
    return Answer(
        rows / total,
        exact=network_answer is None or network_answer.exact,
        particles=1 if network_answer is None else network_answer.particles,
        visited=(),
        forward_rows=0 if network_answer is None else network_answer.forward_rows,
        sampling_error=None if network_answer is None else network_answer.sampling_error,
        counted=counts.counted,
        least=counts.least / total,
        most=counts.most / total,
        steps=max(0, counts.steps),
    )


def is_counted(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts give the exact number of rows."""
    return bool(summary.rows) and rows_of(strings, summary).counted


def are_estimated(strings: Automaton, summary: Substrings) -> bool:
    """Whether the counts alone give an estimate, so that no network is asked."""
    return bool(summary.rows) and rows_of(strings, summary).steps >= 0


def rows_of(strings: Automaton, summary: Substrings) -> RowRange:
    """The number of rows that have one of ``strings``. ``steps`` is -1 if the counts only bound it."""
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
    is_listed, is_complement_listed = (
        strings.is_finite,
        (~strings).is_finite,
    )  # the complement of a finite set is no union of pieces
    if not is_complement_listed and (pieces := reader.pieces(union)) is not None:
        by_union.append(reader.any_of(pieces))
        if by_union[0].counted or (len(pieces) == 1 and len(strings.letters.characters) > MOST_PIECES):
            return by_union[0]  # its complement would need a piece for each other letter
    complement_reader = PieceReader(~strings, summary)
    if not (is_listed and by_union) and (complement_pieces := complement_reader.pieces(union)) is not None:
        by_union.append(complement_reader.any_of(complement_pieces).complement(total))
    if by_union:
        return min(by_union, key=lambda by_pieces: by_pieces.most - by_pieces.least)
    bounds, complement = reader.bounded(complement_reader), complement_reader.bounded(reader)
    least, most = max(bounds.least, total - complement.most), min(bounds.most, total - complement.least)
    if bounds.most < total:
        rows, steps = bounds.rows, bounds.steps
    elif complement.most < total:
        rows, steps = total - complement.rows, complement.steps
    else:
        rows, steps = total, -1
    return RowRange(min(max(rows, least), most), least, max(least, most), steps)


@dataclass(frozen=True)
class CountedText:
    """Text that all strings of an automaton contain; with ``begins`` or ``ends`` they begin or end with it.

    ``rows`` contain it; if that count was scaled up from a sample, ``most`` is its upper bound.
    """

    text: str
    begins: bool
    ends: bool
    rows: float
    most: float


def smallest_part(strings: Automaton, summary: Substrings, alone: bool) -> CountedText | None:
    """The counted text with the fewest rows that all ``strings`` contain; None if there is none.

    Case-insensitive strings have none. If the filter stands ``alone``, a pattern that is a union of pieces has none
    either: its pieces are counted.
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
    return CountedText(text, begins, ends, rows_of_piece[piece], summary.most(rows_of_piece[piece])) if text else None
