"""Drift of a column: the distance between a sample of rows and the model, beyond sampling noise.

The measure is a share of rows: those that would have to change their value before the two agree (total variation). For
text it is the largest difference of three: the shares that are NULL, that are cut, and that have a frequent substring.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Column
from countless.data.columns.strings.text import TextColumn
from countless.data.encoding.recoding import MISSING, UNSEEN
from countless.data.evidence import EvidenceRows
from countless.data.summaries.counting import bucket_starts
from countless.data.summaries.pair_counts import Pairs
from countless.data.summaries.substrings import Substrings

BUCKETS = 32  # into which the values of a column are put
FALSE_ALARMS = 1e-4  # how often a column that has not changed is reported
PAIR_BUCKETS = 12  # the same, where it is compared with another
LEAST_ROWS = 100  # of a sample, to compare pairs of columns
PARTS = 200  # substrings of a text column that are looked for
NOT_HELD = "values that the model does not hold"


@dataclass(frozen=True)
class Moved:
    """Some values of a column, and their share of the rows: as the model has it, and in the table."""

    what: str
    model: float
    table: float


@dataclass(frozen=True)
class Drift:
    """How far a column is from what the model holds of it.

    ``distance`` is the share of rows that differ, ``noise`` what chance alone may make of it in a sample, and ``drift``
    what is left. ``new`` is the share of rows with values that the model does not hold, ``moved`` what differs most.
    """

    column: str
    distance: float
    noise: float
    new: float
    moved: Moved

    @property
    def drift(self) -> float:
        """The distance beyond the noise."""
        return max(0.0, self.distance - self.noise)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "drift": self.drift}


def column_drift(column: Column, model: FloatArray, codes: IntArray, sampled: bool = False) -> Drift:
    """Of a column with ``model`` rows of every code; ``codes`` are those of a sample, MISSING for NULL, or UNSEEN.

    If the rows of the model are ``sampled`` too, chance has twice a say.
    """
    null = column.null if column.has_null else UNSEEN
    found = np.where(codes == MISSING, null, codes)
    new = float((found == UNSEEN).mean())
    met = np.bincount(found[found >= 0], minlength=column.size)
    starts = bucket_starts(np.rint(model).astype(np.int64), BUCKETS, column.has_null)
    ends = [*starts[1:].tolist(), column.size]
    held = np.array([*np.add.reduceat(model, starts), 0.0]) / max(1e-9, model.sum())
    table = np.array([*np.add.reduceat(met, starts), len(found) - met.sum()]) / len(found)
    most = int(np.argmax(np.abs(table - held)))
    what = NOT_HELD if most == len(starts) else _label(column, int(starts[most]), ends[most])
    distance = float(np.abs(table - held).sum()) / 2
    rows = 1 / (1 / len(found) + 1 / model.sum()) if sampled else len(found)
    return Drift(column.name, distance, _noise(held, rows), new, Moved(what, float(held[most]), float(table[most])))


def evidence_drift(evidence: EvidenceRows, index: int, texts: Sequence[str | None], sampled: bool) -> Drift:
    """Of the text column at ``index``: how strings are sorted among the strings of the evidence rows."""
    column = evidence.schema.coded[index]
    held = np.bincount(evidence.codes[index], minlength=column.size).astype(np.float64)
    first = 0 if column.values else UNSEEN
    places = [MISSING if text is None else max(first, bisect_right(column.values, text) - 1) for text in texts]
    return column_drift(column, held, np.array(places, dtype=np.int64), sampled)


@dataclass(frozen=True)
class Parted:
    """Two columns that no longer go together as they did: in this many rows, beyond chance and their own drift."""

    columns: tuple[str, str]
    drift: float


def parted(pairs: Pairs, columns: Sequence[Column], codes: IntArray, drifts: Sequence[Drift]) -> list[Parted]:
    """Every pair of columns whose rows are counted, the one that has changed most first; ``codes`` are a sample's."""
    known = (codes != UNSEEN).all(axis=1)
    nulls = np.array([column.null if column.has_null else UNSEEN for column in columns], dtype=np.int64)
    found = np.where(codes == MISSING, nulls, codes)
    known &= (found >= 0).all(axis=1)
    if known.sum() < LEAST_ROWS:
        return []
    groups, inside = [], []
    members = [column for column in pairs.members if column < len(columns)]  # hidden columns come last
    for place, column in enumerate(members):
        starts = bucket_starts(pairs.buckets[place], PAIR_BUCKETS, columns[column].has_null)
        group = np.searchsorted(starts, np.arange(len(pairs.starts[place])), side="right") - 1
        bucket = np.searchsorted(pairs.starts[place], found[known, column], side="right") - 1
        groups.append(starts)
        inside.append(group[bucket])
    told = []
    for (one, two), table in pairs.tables.items():
        if two >= len(members):
            continue
        held = np.add.reduceat(np.add.reduceat(table.astype(np.int64), groups[one], axis=0), groups[two], axis=1)
        met = np.bincount(inside[one] * held.shape[1] + inside[two], minlength=held.size)
        shares = held.ravel() / pairs.rows
        distance = float(np.abs(met / known.sum() - shares).sum()) / 2
        own = max(drifts[pairs.members[place]].distance for place in (one, two))
        names = (columns[pairs.members[one]].name, columns[pairs.members[two]].name)
        told.append(Parted(names, max(0.0, distance - own - _noise(shares, int(known.sum())))))
    return sorted(told, key=lambda pair: -pair.drift)


def text_drift(column: TextColumn, summary: Substrings | None, rows: int, texts: Sequence[str | None]) -> Drift:
    """Of a text column of ``rows`` rows."""
    present = [text for text in texts if text is not None]
    known = set(column.characters) | {character for character, _ in column.rare}
    new = sum(not known.issuperset(text) for text in present) / len(texts)
    asked = [
        Moved("strings that are cut", column.cut / rows, sum(len(t) > column.length for t in present) / len(texts))
    ]
    asked.append(Moved("strings with characters that the model does not hold", 0.0, new))
    if summary is not None:
        asked.append(Moved("NULL", summary.nulls / rows, 1 - len(present) / len(texts)))
        for part, count in frequent_parts(column, summary):
            met = sum(part in text for text in present) / len(texts)
            asked.append(Moved(f"strings with {part!r}", count / rows, met))
    elif not column.has_null:
        asked.append(Moved("NULL", 0.0, 1 - len(present) / len(texts)))
    noises = [_bound(event.model, len(texts), len(asked)) for event in asked]
    beyond = [abs(event.table - event.model) - noise for event, noise in zip(asked, noises, strict=True)]
    most = int(np.argmax(beyond))
    return Drift(column.name, abs(asked[most].table - asked[most].model), noises[most], new, asked[most])


def frequent_parts(column: TextColumn, summary: Substrings) -> list[tuple[str, int]]:
    """The substrings that split the rows most evenly, with the rows that contain each."""
    shares = summary.counts / max(1, summary.rows)
    found: list[tuple[float, str, int]] = []
    for place in np.argsort(-shares * (1 - shares), kind="stable").tolist():
        symbols = summary.symbols_of(place)
        if all(symbol < summary.characters for symbol in symbols):
            text = "".join(column.characters[symbol] for symbol in symbols)
            found.append((float(shares[place] * (1 - shares[place])), text, int(summary.counts[place])))
        if len(found) == PARTS:
            break
    found.sort(key=lambda item: (-item[0], item[1]))
    return [(text, count) for _, text, count in found]


def _noise(shares: FloatArray, rows: float) -> float:
    """The distance between a sample of ``rows`` rows and its own table: its average, and how far it may exceed that."""
    usual = float(np.sqrt(2 * shares * (1 - shares) / (math.pi * rows)).sum()) / 2
    return usual + math.sqrt(math.log(1 / FALSE_ALARMS) / (2 * rows))


def _bound(share: float, rows: int, events: int) -> float:
    """How far a share may be off in a sample of this many rows, for one of this many events."""
    chance = math.log(2 * events / FALSE_ALARMS)
    return math.sqrt(2 * share * (1 - share) * chance / rows) + chance / (3 * rows)


def _label(column: Column, first: int, end: int) -> str:
    """The values of some codes."""
    if first == column.null:
        return "NULL"
    end = min(end, column.null)
    if column.grid is None:
        low, high = column.values[first], column.values[end - 1]
    else:
        low, high = column.values[column.grid.starts[first]], column.values[column.grid.knots(end - 1)[-1]]
    return low if low == high else f"{low} to {high}"
