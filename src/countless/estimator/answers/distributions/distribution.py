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
LEAST_DISAGREEMENT = 0.01  # a smaller disagreement is not mentioned
HALF_A_ROW = 0.5


@dataclass(frozen=True, eq=False)
class Distribution(Frame):
    """The values of some columns among the rows of a condition, the most frequent ones first.

    A row has the value of each column (for bins, the edges ``<column>_from`` and ``<column>_to``), its ``share`` of the
    condition's rows, its number of ``rows``, and the error bar from ``low`` to ``high``. The rows add up to those of
    ``total``, except those ``outside`` the requested bins.

    Attributes:
        total: The estimate for the whole condition.
        disagreement: Relative difference between the sum of the values and ``total``, before scaling.
        counted: The rows are exact counts.
        sampled: The model's answer is from random sampling.
        ms: Time in milliseconds.

    >>> distribution = est.distribution("sex", "age > 80")
    >>> distribution.names, distribution.rows[0][:3]
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
        outside = self.total.rows - sum(self.columns[NUMBERS.index("rows") - len(NUMBERS)])
        return outside if outside >= HALF_A_ROW else 0.0

    def __str__(self) -> str:
        message = f"{format_rows(self.total.rows)} rows where {self.total.where}, {len(self):,} values"
        if self.outside:
            message += f"; {format_rows(self.outside)} of the rows lie outside the bins"
        if abs(self.disagreement) >= LEAST_DISAGREEMENT:
            message += f"; the values were scaled to add up, their sum was {self.disagreement:+.1%} off"
        rows = [(*row[:-4], f"{row[-4]:.2%}", *map(format_rows, row[-3:])) for row in self.rows]
        return f"{aligned(self.names, self.types, rows)}\n{message}"


def distribution(
    schema: Schema,
    joint: Joint,
    calibration: Calibration,
    bins: BinsWanted | None,
    sort: str,
    started: float,
) -> Distribution:
    """The distribution of the values, or bins, of the columns of ``joint``."""
    columns = [schema.coded[column] for column in joint.columns]
    if sort not in SORTS:
        raise QueryTypeError(f"unknown order {sort!r}: sort by {' or '.join(SORTS)}")
    requested = bins_by_column(columns, bins)
    parts = [_values_or_bins(column, requested.get(column.name)) for column in columns]
    codes, rows, counts = joint.codes, joint.rows, joint.bars
    counted = joint.counted and not any(isinstance(part, Bins) and part.cuts_codes for part in parts)
    if any(isinstance(part, Bins) for part in parts):
        codes, rows, counts = _binned(joint, parts)
        counted |= joint.counted and counts is not None
        sort = "value"
    if counts is None:
        counts = _bars(rows, counted, calibration, schema.rows, joint.shape)
    rows, low, high = counts.rows, counts.low, counts.high
    if sort == "rows":
        order = np.argsort(-rows, kind="stable")
        codes, rows, low, high = codes[order], rows[order], low[order], high[order]
    shares = rows / joint.total.rows if joint.total.rows > 0 else rows
    names, types, values = _labels(columns, parts, codes)
    return Distribution(
        (*names, *NUMBERS),
        (*types, *("DOUBLE",) * len(NUMBERS)),
        (*values, *(numbers.tolist() for numbers in (shares, rows, low, high))),
        joint.total,
        joint.disagreement,
        counted,
        not joint.exact,
        (answer_clock() - started) * 1e3,
    )


def bins_by_column(columns: Sequence[Column], bins: BinsWanted | None) -> Mapping[str, int | Sequence[Any]]:
    """The requested bins of each column by its name. A number, or edges, applies to all columns that can have bins."""
    if isinstance(bins, Mapping):
        names = {column.name.casefold(): column.name for column in columns}
        for name in bins:
            if str(name).casefold() not in names:
                raise QueryTypeError(f'bins of "{name}", which is not among the columns: name one of them')
        return {names[name.casefold()]: column_bins for name, column_bins in bins.items()}
    if bins is None:
        return {}
    binnable = [column for column in columns if can_be_binned(column.type)]
    if are_edges(bins):
        return {column.name: bins for column in binnable or columns}
    number = whole(bins, "the number of bins", 1)
    return {column.name: number for column in binnable}


def _values_or_bins(column: Column, requested: int | Sequence[Any] | None) -> Values | Bins:
    """The column's values, or its bins if they are requested or there are too many values."""
    if requested is None and needs_bins(column):
        requested = DEFAULT_BINS
    return Values(column) if requested is None else bins_of(column, requested)


def _bars(rows: FloatArray, counted: bool, calibration: Calibration, total: int, shape: Shape) -> GroupCounts:
    """The rows by the model alone, with their error bars."""
    if counted:
        rows = np.rint(rows)
        return GroupCounts(rows, rows, rows)
    return GroupCounts(rows, *bars(calibration, rows, total, shape))


def _binned(joint: Joint, parts: Sequence[Values | Bins]) -> tuple[IntArray, FloatArray, GroupCounts | None]:
    """The combinations of bins and their rows. With evidence, its hits in each bin are fused with them."""
    bins = [part if isinstance(part, Bins) else None for part in parts]
    codes, rows = _in_bins(joint.codes, joint.rows if joint.prior is None else joint.prior, bins)
    if joint.observed is None:
        return codes, rows, None
    evidence = joint.observed.evidence
    hit_codes = [
        evidence.codes(column) if part is None else evidence.bins(column, part)
        for column, part in zip(joint.columns, bins, strict=True)
    ]
    inside = np.all([column_codes >= 0 for column_codes in hit_codes], axis=0)
    sizes = [
        evidence.schema.coded[column].size if part is None else part.shares.shape[1]
        for column, part in zip(joint.columns, bins, strict=True)
    ]
    hit_combinations, hits = tally([column_codes[inside] for column_codes in hit_codes], sizes)
    if evidence.whole:
        exact: FloatArray = hits.astype(np.float64)
        return hit_combinations, exact, GroupCounts(exact, exact, exact)
    codes, rows, counts = merged(codes, rows, hit_combinations, hits, sizes)
    return codes, rows, joint.observed.fused(rows, counts, joint.total, joint.shape)


def _in_bins(codes: Any, rows: FloatArray, parts: Sequence[Bins | None]) -> tuple[Any, FloatArray]:
    """The rows of combinations of bins. A code can be in several bins."""
    for index, part in enumerate(parts):
        if part is None:
            continue
        shares = part.shares[codes[:, index]]  # (combinations, bins)
        combination, bin_index = np.nonzero(shares)
        rows = rows[combination] * shares[combination, bin_index]
        codes = codes[combination].copy()
        codes[:, index] = bin_index
        codes, positions = np.unique(codes, axis=0, return_inverse=True)
        rows = np.bincount(positions.ravel(), rows, minlength=len(codes)).astype(np.float64)
    return codes, rows


def _labels(
    columns: Sequence[Column], parts: Sequence[Values | Bins], codes: Any
) -> tuple[list[str], list[str], list[list[str | None]]]:
    """Names, types and values of the columns that have the value, or the edges of the bin, of each row."""
    names, types, values = [], [], []
    for index, (column, part) in enumerate(zip(columns, parts, strict=True)):
        column_codes = codes[:, index].tolist()
        if isinstance(part, Values):
            names.append(column.name)
            types.append(column.type)
            values.append([part.texts[code] for code in column_codes])
            continue
        lows = [*part.edges[:-1], None] if part.has_null else list(part.edges[:-1])
        highs = [*part.edges[1:], None] if part.has_null else list(part.edges[1:])
        kind = _edge_type(column.type)
        for name, edges in (("from", lows), ("to", highs)):
            names.append(f"{column.name}_{name}")
            types.append(kind)
            values.append([edges[code] for code in column_codes])
    return names, types, values


def _edge_type(kind: str) -> str:
    """The type of edges. Edges of small integers may be outside the range of their type."""
    return "BIGINT" if kind in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER") else kind
