"""Drift of a column: the distance between a sample of rows and the model, beyond sampling noise.

The distance is the share of rows that would have to change their value for the two to agree (total variation). For text
it is the largest difference of these shares: strings that are NULL, that are cut, or that have a frequent substring.
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

BUCKETS = 32  # of the values of a column
FALSE_ALARMS = 1e-4  # how often a column that has not changed is reported
PAIR_BUCKETS = 12  # of the values of each column of a pair
LEAST_ROWS = 100  # of a sample, to compare pairs of columns
MAX_SUBSTRINGS = 200  # of a text column, whose shares are compared
NOT_HELD = "values that the model does not hold"


@dataclass(frozen=True)
class ShareChange:
    """The share of rows with certain values of a column: in the model, and in the table."""

    what: str
    model: float
    table: float


@dataclass(frozen=True)
class Drift:
    """The difference between a column of the table and of the model.

    ``distance`` is the share of rows that differ, ``noise`` the distance that a sample may have by chance, and
    ``drift`` the rest. ``new`` is the share of rows with values that the model does not hold, ``moved`` the values
    whose share differs most.
    """

    column: str
    distance: float
    noise: float
    new: float
    moved: ShareChange

    @property
    def drift(self) -> float:
        """The distance beyond the noise."""
        return max(0.0, self.distance - self.noise)

    def to_json(self) -> dict[str, Any]:
        """The fields as a dictionary that can be written as JSON."""
        return {**asdict(self), "drift": self.drift}


def column_drift(column: Column, model: FloatArray, codes: IntArray, sampled: bool = False) -> Drift:
    """The drift of a column. ``model`` has the rows of each code; ``codes`` are a sample's, MISSING for NULL or UNSEEN.

    If the rows of the model are ``sampled`` too, the noise of both samples counts.
    """
    null = column.null if column.has_null else UNSEEN
    sample_codes = np.where(codes == MISSING, null, codes)
    new = float((sample_codes == UNSEEN).mean())
    counts = np.bincount(sample_codes[sample_codes >= 0], minlength=column.size)
    starts = bucket_starts(np.rint(model).astype(np.int64), BUCKETS, column.has_null)
    ends = [*starts[1:].tolist(), column.size]
    model_shares = np.array([*np.add.reduceat(model, starts), 0.0]) / max(1e-9, model.sum())
    table_shares = np.array([*np.add.reduceat(counts, starts), len(sample_codes) - counts.sum()]) / len(sample_codes)
    most = int(np.argmax(np.abs(table_shares - model_shares)))
    what = NOT_HELD if most == len(starts) else _label(column, int(starts[most]), ends[most])
    distance = float(np.abs(table_shares - model_shares).sum()) / 2
    rows = 1 / (1 / len(sample_codes) + 1 / model.sum()) if sampled else len(sample_codes)
    return Drift(
        column.name,
        distance,
        _noise(model_shares, rows),
        new,
        ShareChange(what, float(model_shares[most]), float(table_shares[most])),
    )


def evidence_drift(evidence: EvidenceRows, index: int, texts: Sequence[str | None], sampled: bool) -> Drift:
    """The drift of the text column at ``index``, by the ranks of strings among those of the evidence rows."""
    column = evidence.schema.coded[index]
    counts = np.bincount(evidence.codes[index], minlength=column.size).astype(np.float64)
    first = 0 if column.values else UNSEEN
    codes = [MISSING if text is None else max(first, bisect_right(column.values, text) - 1) for text in texts]
    return column_drift(column, counts, np.array(codes, dtype=np.int64), sampled)


@dataclass(frozen=True)
class PairDrift:
    """How much the relation of two columns has changed, as a share of rows, beyond noise and the columns' own drift."""

    columns: tuple[str, str]
    drift: float


def pair_drifts(pairs: Pairs, columns: Sequence[Column], codes: IntArray, drifts: Sequence[Drift]) -> list[PairDrift]:
    """The drift of all pairs of columns whose rows are counted, largest first; ``codes`` are those of a sample."""
    is_known = (codes != UNSEEN).all(axis=1)
    nulls = np.array([column.null if column.has_null else UNSEEN for column in columns], dtype=np.int64)
    sample_codes = np.where(codes == MISSING, nulls, codes)
    is_known &= (sample_codes >= 0).all(axis=1)
    if is_known.sum() < LEAST_ROWS:
        return []
    groups, bucket_groups = [], []
    members = [column for column in pairs.members if column < len(columns)]  # hidden columns come last
    for index, column in enumerate(members):
        starts = bucket_starts(pairs.buckets[index], PAIR_BUCKETS, columns[column].has_null)
        group = np.searchsorted(starts, np.arange(len(pairs.starts[index])), side="right") - 1
        bucket = np.searchsorted(pairs.starts[index], sample_codes[is_known, column], side="right") - 1
        groups.append(starts)
        bucket_groups.append(group[bucket])
    results = []
    for (first, second), table in pairs.tables.items():
        if second >= len(members):
            continue
        model_rows = np.add.reduceat(
            np.add.reduceat(table.astype(np.int64), groups[first], axis=0), groups[second], axis=1
        )
        counts = np.bincount(
            bucket_groups[first] * model_rows.shape[1] + bucket_groups[second], minlength=model_rows.size
        )
        shares = model_rows.ravel() / pairs.rows
        distance = float(np.abs(counts / is_known.sum() - shares).sum()) / 2
        column_distance = max(drifts[pairs.members[index]].distance for index in (first, second))
        names = (columns[pairs.members[first]].name, columns[pairs.members[second]].name)
        results.append(PairDrift(names, max(0.0, distance - column_distance - _noise(shares, int(is_known.sum())))))
    return sorted(results, key=lambda pair: -pair.drift)


def text_drift(column: TextColumn, summary: Substrings | None, rows: int, texts: Sequence[str | None]) -> Drift:
    """The drift of a text column; the model's table has ``rows`` rows."""
    present = [text for text in texts if text is not None]
    known_characters = set(column.characters) | {character for character, _ in column.rare}
    new = sum(not known_characters.issuperset(text) for text in present) / len(texts)
    changes = [
        ShareChange(
            "strings that are cut", column.cut / rows, sum(len(t) > column.length for t in present) / len(texts)
        )
    ]
    changes.append(ShareChange("strings with characters that the model does not hold", 0.0, new))
    if summary is not None:
        changes.append(ShareChange("NULL", summary.nulls / rows, 1 - len(present) / len(texts)))
        for substring, count in frequent_substrings(column, summary):
            share = sum(substring in text for text in present) / len(texts)
            changes.append(ShareChange(f"strings with {substring!r}", count / rows, share))
    elif not column.has_null:
        changes.append(ShareChange("NULL", 0.0, 1 - len(present) / len(texts)))
    noises = [_bound(change.model, len(texts), len(changes)) for change in changes]
    excesses = [abs(change.table - change.model) - noise for change, noise in zip(changes, noises, strict=True)]
    largest = int(np.argmax(excesses))
    return Drift(
        column.name, abs(changes[largest].table - changes[largest].model), noises[largest], new, changes[largest]
    )


def frequent_substrings(column: TextColumn, summary: Substrings) -> list[tuple[str, int]]:
    """The substrings whose share of rows is nearest to a half, with the rows that contain each."""
    shares = summary.counts / max(1, summary.rows)
    substrings: list[tuple[float, str, int]] = []
    for index in np.argsort(-shares * (1 - shares), kind="stable").tolist():
        symbols = summary.symbols_of(index)
        if all(symbol < summary.characters for symbol in symbols):
            text = "".join(column.characters[symbol] for symbol in symbols)
            substrings.append((float(shares[index] * (1 - shares[index])), text, int(summary.counts[index])))
        if len(substrings) == MAX_SUBSTRINGS:
            break
    substrings.sort(key=lambda item: (-item[0], item[1]))
    return [(text, count) for _, text, count in substrings]


def _noise(shares: FloatArray, rows: float) -> float:
    """The largest plausible distance between a sample of ``rows`` rows and the table that it is from."""
    average = float(np.sqrt(2 * shares * (1 - shares) / (math.pi * rows)).sum()) / 2
    return average + math.sqrt(math.log(1 / FALSE_ALARMS) / (2 * rows))


def _bound(share: float, rows: int, events: int) -> float:
    """The largest plausible error of a share in a sample of ``rows`` rows, if ``events`` shares are compared."""
    chance = math.log(2 * events / FALSE_ALARMS)
    return math.sqrt(2 * share * (1 - share) * chance / rows) + chance / (3 * rows)


def _label(column: Column, first: int, end: int) -> str:
    """A label for the values of the codes from ``first`` to ``end``."""
    if first == column.null:
        return "NULL"
    end = min(end, column.null)
    if column.grid is None:
        low, high = column.values[first], column.values[end - 1]
    else:
        low, high = column.values[column.grid.starts[first]], column.values[column.grid.knots(end - 1)[-1]]
    return low if low == high else f"{low} to {high}"
