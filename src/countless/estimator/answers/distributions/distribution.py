"""Conditional distributions: the share of each value of a column, or of each pair of values of two columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Column, Schema
from countless.data.frame import Frame, aligned
from countless.errors import QueryTypeError
from countless.estimator.answers.aggregates.group_fusion import GroupCounts
from countless.estimator.answers.distributions.bins import (
    DEFAULT_BINS,
    Bins,
    are_edges,
    bins_of,
    can_be_binned,
    needs_bins,
)
from countless.estimator.answers.distributions.evidence_values import merged, tally
from countless.estimator.answers.distributions.joint import Joint
from countless.estimator.answers.distributions.values import Values
from countless.estimator.answers.estimate import Estimate, format_rows
from countless.estimator.arguments import whole
from countless.estimator.calibration.conformal import Calibration, Shape, bars
from countless.query.answer_clock import answer_clock

NUMBERS = ("share", "rows", "low", "high")
SORTS = ("rows", "value")
BinsWanted = int | Sequence[Any] | Mapping[str, int | Sequence[Any]]
TOLD = 0.01  # a disagreement that is worth a word
HALF_A_ROW = 0.5


@dataclass(frozen=True, eq=False)
class Distribution(Frame):
    """The values of some columns among the rows of a condition, the most frequent ones first.

    A row has the value of each column (of bins, the edges ``<column>_from`` and ``<column>_to``), its ``share`` of the
    condition's rows, its number of ``rows``, and the error bar from ``low`` to ``high``. The rows add up to those of
    ``total``, except those ``outside`` of given bins.

    Attributes:
        total: The estimate for the whole condition.
        disagreement: Relative difference between the sum of the values and ``total``, before scaling.
        counted: The rows are exact counts.
        sampled: The model's answer is from random sampling.
        ms: Time in milliseconds.

    >>> found = est.distribution("sex", "age > 80")
    >>> found.names, found.rows[0][:3]
    (('sex', 'share', 'rows', 'low', 'high'), ('Male', 0.6756756756756757, 100.0))
    """

    total: Estimate
    disagreement: float
    counted: bool
    sampled: bool
    ms: float

    @property
    def outside(self) -> float:
        """The condition's rows that are in none of the bins.

        >>> est.distribution("age", "sex = 'Male'", bins=[0, 80]).outside
        100.0
        """
        found = self.total.rows - sum(self.columns[NUMBERS.index("rows") - len(NUMBERS)])
        return found if found >= HALF_A_ROW else 0.0

    def __str__(self) -> str:
        message = f"{format_rows(self.total.rows)} rows where {self.total.where}, {len(self):,} values"
        if self.outside:
            message += f"; {format_rows(self.outside)} of the rows lie outside the bins"
        if abs(self.disagreement) >= TOLD:
            message += f"; the values were scaled to add up, their sum was {self.disagreement:+.1%} off"
        shown = [(*row[:-4], f"{row[-4]:.2%}", *map(format_rows, row[-3:])) for row in self.rows]
        return f"{aligned(self.names, self.types, shown)}\n{message}"


def distribution(
    schema: Schema,
    found: Joint,
    calibration: Calibration,
    bins: BinsWanted | None,
    sort: str,
    started: float,
) -> Distribution:
    """What ``found`` says of the values of its columns."""
    columns = [schema.coded[column] for column in found.columns]
    if sort not in SORTS:
        raise QueryTypeError(f"unknown order {sort!r}: sort by {' or '.join(SORTS)}")
    wanted = wanted_bins(columns, bins)
    parts = [_part(column, wanted.get(column.name)) for column in columns]
    codes, rows, fused = found.codes, found.rows, found.bars
    counted = found.counted and not any(isinstance(part, Bins) and part.cuts_codes for part in parts)
    if any(isinstance(part, Bins) for part in parts):
        codes, rows, fused = _binned(found, parts)
        counted |= found.counted and fused is not None
        sort = "value"
    if fused is None:
        fused = _bars(rows, counted, calibration, schema.rows, found.shape)
    rows, low, high = fused.rows, fused.low, fused.high
    if sort == "rows":
        order = np.argsort(-rows, kind="stable")
        codes, rows, low, high = codes[order], rows[order], low[order], high[order]
    shares = rows / found.total.rows if found.total.rows > 0 else rows
    names, types, values = _labels(columns, parts, codes)
    return Distribution(
        (*names, *NUMBERS),
        (*types, *("DOUBLE",) * len(NUMBERS)),
        (*values, *(each.tolist() for each in (shares, rows, low, high))),
        found.total,
        found.disagreement,
        counted,
        not found.exact,
        (answer_clock() - started) * 1e3,
    )


def wanted_bins(columns: Sequence[Column], bins: BinsWanted | None) -> Mapping[str, int | Sequence[Any]]:
    """The bins of each column by its name: a number, or edges, are for all columns that can have bins."""
    if isinstance(bins, Mapping):
        names = {column.name.casefold(): column.name for column in columns}
        for name in bins:
            if str(name).casefold() not in names:
                raise QueryTypeError(f'bins of "{name}", which is not among the columns: name one of them')
        return {names[name.casefold()]: wanted for name, wanted in bins.items()}
    if bins is None:
        return {}
    cuttable = [column for column in columns if can_be_binned(column.type)]
    if are_edges(bins):
        return {column.name: bins for column in cuttable or columns}
    number = whole(bins, "the number of bins", 1)
    return {column.name: number for column in cuttable}


def _part(column: Column, wanted: int | Sequence[Any] | None) -> Values | Bins:
    """The column's values, or its bins if they are wanted or the values are too many."""
    if wanted is None and needs_bins(column):
        wanted = DEFAULT_BINS
    return Values(column) if wanted is None else bins_of(column, wanted)


def _bars(rows: FloatArray, counted: bool, calibration: Calibration, total: int, shape: Shape) -> GroupCounts:
    """The bars of what the model alone says."""
    if counted:
        rows = np.rint(rows)
        return GroupCounts(rows, rows, rows)
    return GroupCounts(rows, *bars(calibration, rows, total, shape))


def _binned(found: Joint, parts: Sequence[Values | Bins]) -> tuple[IntArray, FloatArray, GroupCounts | None]:
    """The combinations of bins and their rows; with evidence, which has every value, its hits in each bin."""
    bins = [part if isinstance(part, Bins) else None for part in parts]
    codes, rows = _in_bins(found.codes, found.rows if found.prior is None else found.prior, bins)
    if found.observed is None:
        return codes, rows, None
    evidence = found.observed.evidence
    own = [
        evidence.codes(column) if part is None else evidence.bins(column, part)
        for column, part in zip(found.columns, bins, strict=True)
    ]
    inside = np.all([each >= 0 for each in own], axis=0)
    sizes = [
        evidence.schema.coded[column].size if part is None else part.shares.shape[1]
        for column, part in zip(found.columns, bins, strict=True)
    ]
    more, hits = tally([each[inside] for each in own], sizes)
    if evidence.whole:
        exact: FloatArray = hits.astype(np.float64)
        return more, exact, GroupCounts(exact, exact, exact)
    codes, rows, counts = merged(codes, rows, more, hits, sizes)
    return codes, rows, found.observed.fused(rows, counts, found.total, found.shape)


def _in_bins(codes: Any, rows: FloatArray, parts: Sequence[Bins | None]) -> tuple[Any, FloatArray]:
    """The rows of combinations of bins; a code may lie in two or more."""
    for index, part in enumerate(parts):
        if part is None:
            continue
        shares = part.shares[codes[:, index]]  # (combinations, bins)
        combination, which = np.nonzero(shares)
        rows = rows[combination] * shares[combination, which]
        codes = codes[combination].copy()
        codes[:, index] = which
        codes, places = np.unique(codes, axis=0, return_inverse=True)
        rows = np.bincount(places.ravel(), rows, minlength=len(codes)).astype(np.float64)
    return codes, rows


def _labels(
    columns: Sequence[Column], parts: Sequence[Values | Bins], codes: Any
) -> tuple[list[str], list[str], list[list[str | None]]]:
    """Names, types and values of the columns that say which value a row is about."""
    names, types, values = [], [], []
    for index, (column, part) in enumerate(zip(columns, parts, strict=True)):
        own = codes[:, index].tolist()
        if isinstance(part, Values):
            names.append(column.name)
            types.append(column.type)
            values.append([part.texts[code] for code in own])
            continue
        lows = [*part.edges[:-1], None] if part.has_null else list(part.edges[:-1])
        highs = [*part.edges[1:], None] if part.has_null else list(part.edges[1:])
        kind = _edge_type(column.type)
        for name, edges in (("from", lows), ("to", highs)):
            names.append(f"{column.name}_{name}")
            types.append(kind)
            values.append([edges[code] for code in own])
    return names, types, values


def _edge_type(kind: str) -> str:
    """Edges of small integers may lie beyond them."""
    return "BIGINT" if kind in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER") else kind
