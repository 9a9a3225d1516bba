"""Frequent beginnings and endings of a column's strings among the rows of a condition, counted in evidence rows.

The rule is simple. A column has one separator: the first of SEPARATORS that at least half of its strings contain.

- A beginning ends with a separator: ``/usr/share/``. The list starts with the shortest beginnings. As long as one of
  them has more than half of the rows, its continuations replace it, if one of them has a tenth of its rows. A beginning
  that all rows have is always replaced.
- An ending is a file name's ending (``.html``) if the separator is a slash. Otherwise it is the last separator and the
  rest of the string: ``@example.org``, ``-dev``. Strings with ``@`` have endings only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.evidence import Hits
from countless.estimator.answers.aggregates.group_fusion import GroupCounts, counts_of_hits
from countless.estimator.answers.distributions.evidence_values import derived_once
from countless.estimator.answers.estimate import Estimate

SEPARATORS = ("/", "\\", "@", " ", ".", "-", "_")
LEAST_SEPARATOR_SHARE = 0.5  # share of strings that must contain the separator
SPLIT_SHARE = 0.5  # share of rows above which a beginning is split
LEAST_CONTINUATION_SHARE = 0.1  # a beginning is split only if a continuation has this share of its rows
MAX_DEPTH = 16  # how often a beginning is split at most
SUFFIX = re.compile(r"\.\w{1,8}\Z")  # of a file name
NO_PIECE = -1  # the piece index of a string without a piece


@dataclass(frozen=True)
class StringPiece:
    """A beginning or an ending, how many rows of the condition have it, and the error bar."""

    text: str
    rows: float
    low: float
    high: float


@dataclass(frozen=True)
class StringPieces:
    """The most frequent beginnings and endings of a column's strings among ``total`` rows, most rows first."""

    starts: tuple[StringPiece, ...]
    ends: tuple[StringPiece, ...]
    total: Estimate


@dataclass(frozen=True, eq=False)
class _Cut:
    """Strings cut into pieces: the index in ``texts`` of each string's piece, and the offset of the string's rest."""

    texts: Sequence[str]
    piece_indexes: IntArray
    rest_offsets: Sequence[int]


def string_pieces(hits: Hits | None, index: int, total: Estimate, top: int, least_hits: int) -> StringPieces:
    """The ``top`` beginnings and endings of the column at ``index`` that have at least ``least_hits`` evidence rows."""
    if hits is None or hits.count == 0:
        return StringPieces((), (), total)
    rows, column = hits.rows, hits.rows.schema.coded[index]
    separator = derived_once(rows, ("separator", index), lambda: separator_of(column.values))
    if separator is None:
        return StringPieces((), (), total)
    weights: FloatArray = np.bincount(hits.codes(index), minlength=column.size)[: len(column.values)].astype(float)

    def cut(depth: int) -> _Cut:
        shorter = None if depth == 1 else cut(depth - 1)
        return derived_once(rows, ("start", index, depth), lambda: _starts(column.values, separator, shorter))

    ends = derived_once(rows, ("ends", index), lambda: _ends(column.values, separator))
    starts = {} if separator == "@" else _split(cut, weights)
    return StringPieces(
        _pieces(starts, total, hits.count, top, least_hits),
        _pieces(_hits_by_piece(ends, weights), total, hits.count, top, least_hits),
        total,
    )


def separator_of(values: Sequence[str]) -> str | None:
    """The separator of a column's strings; None if it has none.

    >>> separator_of(["/usr/bin", "/etc"]), separator_of(["a@b.org", "c@d.org"]), separator_of(["x", "y"])
    ('/', '@', None)
    """
    for separator in SEPARATORS:
        if values and sum(separator in value for value in values) >= LEAST_SEPARATOR_SHARE * len(values):
            return separator
    return None


def _starts(values: Sequence[str], separator: str, shorter: _Cut | None) -> _Cut:
    """The beginning of each string up to the next separator, after the ``shorter`` beginning.

    Several separators in a row count as one.
    """
    indexes: dict[str, int] = {}
    piece_indexes, rest_offsets = [], []
    for number, value in enumerate(values):
        offset = 0 if shorter is None else shorter.rest_offsets[number]
        separator_offset = value.find(separator, offset) if offset >= 0 else -1
        if separator_offset < 0:
            piece_indexes.append(NO_PIECE)
            rest_offsets.append(-1)
            continue
        end = separator_offset + 1
        while value.startswith(separator, end):
            end += 1
        piece_indexes.append(indexes.setdefault(value[:end], len(indexes)))
        rest_offsets.append(end)
    return _Cut(list(indexes), np.array(piece_indexes, dtype=np.int64), rest_offsets)


def _ends(values: Sequence[str], separator: str) -> _Cut:
    """The ending of each string."""
    indexes: dict[str, int] = {}
    piece_indexes = []
    for value in values:
        if separator in "/\\":
            match = SUFFIX.search(value)
            end = None if match is None else match.group()
        else:
            end = value[value.rfind(separator) :] if separator in value else None
        piece_indexes.append(NO_PIECE if end is None else indexes.setdefault(end, len(indexes)))
    return _Cut(list(indexes), np.array(piece_indexes, dtype=np.int64), ())


def _split(cut: Callable[[int], _Cut], weights: FloatArray) -> dict[str, float]:
    """Beginnings and their hits. A beginning with most of the hits is replaced by its continuations."""
    level = cut(1)
    hits, total = _hits_by_piece(level, weights), float(weights.sum())
    for depth in range(2, MAX_DEPTH + 2):
        largest = max(hits, key=hits.__getitem__, default="")
        if largest not in level.texts or hits[largest] <= SPLIT_SHARE * total:
            break
        weights = np.where(level.piece_indexes == level.texts.index(largest), weights, 0.0)
        level = cut(depth)
        continuations = _hits_by_piece(level, weights)
        most = max(continuations.values(), default=0.0)
        if hits[largest] < total and most < LEAST_CONTINUATION_SHARE * hits[largest]:
            break
        if not continuations:
            break
        del hits[largest]
        hits |= continuations
    return hits


def _hits_by_piece(cut: _Cut, weights: FloatArray) -> dict[str, float]:
    """The number of hits of each piece, without pieces that have none."""
    has_piece = cut.piece_indexes >= 0
    hits = np.bincount(cut.piece_indexes[has_piece], weights[has_piece], minlength=len(cut.texts))
    return {cut.texts[index]: float(hits[index]) for index in np.flatnonzero(hits).tolist()}


def _pieces(hits: dict[str, float], total: Estimate, count: int, top: int, least_hits: int) -> tuple[StringPiece, ...]:
    """The ``top`` most frequent pieces with their rows and error bars; ``count`` is the hits of the condition."""
    frequent = {text: piece_hits for text, piece_hits in hits.items() if piece_hits >= least_hits}
    texts = sorted(frequent, key=lambda text: (-frequent[text], text))[:top]
    bars: GroupCounts = counts_of_hits(np.array([frequent[text] for text in texts]), total, count)
    columns = (bars.rows.tolist(), bars.low.tolist(), bars.high.tolist())
    return tuple(StringPiece(text, *numbers) for text, *numbers in zip(texts, *columns, strict=True))
