"""Frequent beginnings and endings of a column's strings among the rows of a condition, counted in evidence rows.

The rule is simple. A column has one separator: the first of SEPARATORS that at least half of its strings contain.

- A beginning ends with a separator: ``/usr/share/``. The list starts with the first ones. As long as one of them has
  more than half of the rows, its continuations take its place, if one of them has a tenth of its rows. A beginning of
  all rows is always replaced.
- An ending is a file name's ending (``.html``) if the separator is a slash, and otherwise what follows the last
  separator, with it: ``@example.org``, ``-dev``. Strings with ``@`` have endings only.
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
ENOUGH = 0.5  # of the strings have the separator
MOST = 0.5  # of the rows: a beginning with more is split
WORTH_SPLITTING = 0.1  # of a beginning: one of its continuations has this share
DEPTH = 16  # beginnings are split this often at most
SUFFIX = re.compile(r"\.\w{1,8}\Z")  # of a file name
NONE = -1  # the piece of a string that has none


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
    """The piece of each string, by its place in ``texts``; and where the rest of the string begins."""

    texts: Sequence[str]
    owners: IntArray
    rests: Sequence[int]


def string_pieces(hits: Hits | None, index: int, total: Estimate, top: int, least_hits: int) -> StringPieces:
    """The pieces of the column at ``index``, ``top`` of each kind, and only those of ``least_hits`` evidence rows."""
    if hits is None or hits.count == 0:
        return StringPieces((), (), total)
    rows, column = hits.rows, hits.rows.schema.coded[index]
    separator = derived_once(rows, ("separator", index), lambda: separator_of(column.values))
    if separator is None:
        return StringPieces((), (), total)
    weights: FloatArray = np.bincount(hits.codes(index), minlength=column.size)[: len(column.values)].astype(float)

    def cut(depth: int) -> _Cut:
        before = None if depth == 1 else cut(depth - 1)
        return derived_once(rows, ("start", index, depth), lambda: _starts(column.values, separator, before))

    ends = derived_once(rows, ("ends", index), lambda: _ends(column.values, separator))
    starts = {} if separator == "@" else _split(cut, weights)
    return StringPieces(
        _pieces(starts, total, hits.count, top, least_hits),
        _pieces(_counted(ends, weights), total, hits.count, top, least_hits),
        total,
    )


def separator_of(values: Sequence[str]) -> str | None:
    """The separator of a column's strings; None if it has none.

    >>> separator_of(["/usr/bin", "/etc"]), separator_of(["a@b.org", "c@d.org"]), separator_of(["x", "y"])
    ('/', '@', None)
    """
    for separator in SEPARATORS:
        if values and sum(separator in value for value in values) >= ENOUGH * len(values):
            return separator
    return None


def _starts(values: Sequence[str], separator: str, before: _Cut | None) -> _Cut:
    """The beginning of each string up to the next separator, or the last of several in a row."""
    places: dict[str, int] = {}
    owners, rests = [], []
    for number, value in enumerate(values):
        rest = 0 if before is None else before.rests[number]
        found = value.find(separator, rest) if rest >= 0 else NONE
        if found < 0:
            owners.append(NONE)
            rests.append(NONE)
            continue
        end = found + 1
        while value.startswith(separator, end):
            end += 1
        owners.append(places.setdefault(value[:end], len(places)))
        rests.append(end)
    return _Cut(list(places), np.array(owners, dtype=np.int64), rests)


def _ends(values: Sequence[str], separator: str) -> _Cut:
    places: dict[str, int] = {}
    owners = []
    for value in values:
        if separator in "/\\":
            found = SUFFIX.search(value)
            end = None if found is None else found.group()
        else:
            end = value[value.rfind(separator) :] if separator in value else None
        owners.append(NONE if end is None else places.setdefault(end, len(places)))
    return _Cut(list(places), np.array(owners, dtype=np.int64), ())


def _split(cut: Callable[[int], _Cut], weights: FloatArray) -> dict[str, float]:
    """Beginnings and their hits: one with most of them is replaced by its continuations, if it has some."""
    level = cut(1)
    found, whole = _counted(level, weights), float(weights.sum())
    for depth in range(2, DEPTH + 2):
        largest = max(found, key=found.__getitem__, default="")
        if largest not in level.texts or found[largest] <= MOST * whole:
            break
        weights = np.where(level.owners == level.texts.index(largest), weights, 0.0)
        level = cut(depth)
        more = _counted(level, weights)
        if found[largest] < whole and max(more.values(), default=0.0) < WORTH_SPLITTING * found[largest]:
            break
        if not more:
            break
        del found[largest]
        found |= more
    return found


def _counted(cut: _Cut, weights: FloatArray) -> dict[str, float]:
    """The hits of each piece that has some."""
    has = cut.owners >= 0
    sums = np.bincount(cut.owners[has], weights[has], minlength=len(cut.texts))
    return {cut.texts[place]: float(sums[place]) for place in np.flatnonzero(sums).tolist()}


def _pieces(hits: dict[str, float], total: Estimate, count: int, top: int, least_hits: int) -> tuple[StringPiece, ...]:
    """The most frequent ones with their rows and error bars."""
    enough = {text: found for text, found in hits.items() if found >= least_hits}
    chosen = sorted(enough, key=lambda text: (-enough[text], text))[:top]
    bars: GroupCounts = counts_of_hits(np.array([enough[text] for text in chosen]), total, count)
    columns = (bars.rows.tolist(), bars.low.tolist(), bars.high.tolist())
    return tuple(StringPiece(text, *numbers) for text, *numbers in zip(chosen, *columns, strict=True))
