"""Aggregates of groups from value distributions: counts, sums, means, deviations and quantiles."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.estimator.answers.aggregate_intervals import Bars, Ends
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.joint import Joint
from countless.estimator.answers.quantiles import Ranked
from countless.estimator.answers.result import QueryResult
from countless.estimator.answers.values import Values
from countless.estimator.calibration.conformal import Calibration
from countless.query.compile import Compiler, Question
from countless.query.grids.extent import cut_cells
from countless.query.grids.scale import written
from countless.query.select.outer import GroupTable, Outer
from countless.query.select.statement import AVERAGE, COUNT, QUANTILES, SUM, Aggregate, Selection, pointing, read_select

DEVIATIONS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
LEAST = 0.5  # rows: groups that hold fewer are left out
Texts = list[str | None]


class CountedRows(Protocol):
    """The rows of a condition: how many they are, and how they are spread."""

    @property
    def question(self) -> Question:
        """The condition."""
        ...

    @property
    def total(self) -> Estimate:
        """How many rows it keeps."""
        ...

    def joint(self, columns: Sequence[str], *, groups: int | None = None) -> Joint:
        """How they are spread over the values of ``columns``, the first ``groups`` of which are grouped by."""
        ...


def answered(
    prepare: Callable[[str | None], CountedRows],
    compiler: Compiler,
    outer: Outer,
    sql: str,
    calibration: Calibration | None = None,
) -> QueryResult:
    """The result of the statement ``sql``; with a calibration, error bars too.

    ``prepare`` gives the rows of a condition; None is every row.
    """
    started = time.perf_counter()
    selection = read_select(sql, compiler.schema)
    header = outer.header(selection)
    with pointing(selection):
        table = GroupAggregates(prepare(selection.where), compiler, selection, header.types, calibration)
        made = table.made()
    frame = outer.run(selection, header, made)
    return QueryResult(
        frame.names,
        frame.types,
        frame.columns,
        count=table.groups.total,
        disagreement=table.disagreement,
        left_out_rows=table.groups.left_out,
        ms=(time.perf_counter() - started) * 1e3,
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a statement: their codes (groups, columns), and the rows of each.

    ``left_out`` is how many rows lie in groups that are too small to be among them. Without GROUP BY there is no
    ``joint`` that they were found in.
    """

    codes: IntArray
    rows: FloatArray
    total: Estimate
    joint: Joint | None = None
    left_out: float = 0.0

    @classmethod
    def of(cls, rows: CountedRows, schema: Schema, groups: Sequence[int]) -> Groups:
        """All groups that a row is likely to be in; without GROUP BY there is one, however few rows it has."""
        if not groups:
            return cls(np.zeros((1, 0), dtype=np.int64), np.array([rows.total.rows]), rows.total)
        joint = rows.joint(_names(schema, groups), groups=len(groups))
        kept = joint.rows >= LEAST
        return cls(joint.codes[kept], joint.rows[kept], joint.total, joint, float(joint.rows[~kept].sum()))

    @staticmethod
    def keys(codes: IntArray, schema: Schema, places: Sequence[int]) -> IntArray:
        """One number for each combination of the groups' codes, which rises as they do."""
        found: IntArray = np.zeros(len(codes), dtype=np.int64)
        for place, index in enumerate(places):
            found = found * schema.coded[index].size + codes[:, place]
        return found


class GroupAggregates:
    """The aggregates of every group of one statement, of ``types``; with a calibration, their error bars too."""

    def __init__(
        self,
        rows: CountedRows,
        compiler: Compiler,
        selection: Selection,
        types: Sequence[str],
        calibration: Calibration | None = None,
    ) -> None:
        self.rows = rows
        self.compiler = compiler
        self.schema = compiler.schema
        self.selection = selection
        self.types = types
        self.calibration = calibration
        self.groups = Groups.of(rows, compiler.schema, selection.groups)
        self._spreads: dict[int, GroupValueDistribution] = {}

    @property
    def disagreement(self) -> float:
        """The largest of all that was asked."""
        joints = [self.groups.joint, *(spread.joint for spread in self._spreads.values())]
        return max((abs(joint.disagreement) for joint in joints if joint is not None), default=0.0)

    def made(self) -> GroupTable:
        """The table that the outer statement reads."""
        asked = list(zip(self.selection.aggregates, self.types, strict=True))
        aggregates = [self._values(aggregate, kind) for aggregate, kind in asked]
        ends = [] if self.calibration is None else [self._bar(aggregate, kind) for aggregate, kind in asked]
        columns = [Values(self.schema.coded[index]).texts for index in self.selection.groups]
        texts = [[column[code] for code in self.groups.codes[:, at]] for at, column in enumerate(columns)]
        return GroupTable(texts, aggregates, len(self.groups.rows), ends)

    def _values(self, aggregate: Aggregate, kind: str) -> Texts:
        """The aggregate of every group, as DuckDB prints it."""
        if aggregate.column is None:
            return [str(round(rows)) for rows in self.groups.rows.tolist()]
        spread = self._spread(aggregate.column)
        if aggregate.kind == COUNT:
            told = spread.has_any | (self.groups.rows < LEAST)
            return [str(count) if known else None for count, known in zip(spread.whole, told, strict=True)]
        if aggregate.kind in QUANTILES:
            return [ranked.quantile(aggregate, kind) for ranked in spread.ranked]
        return _texts(kind, _moment(aggregate.kind, spread), _enough(aggregate.kind, spread))

    def _bar(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The low and the high end of every group's error bar, as DuckDB prints them."""
        if aggregate.column is None or aggregate.kind == COUNT:
            low, high = self._count_bar(aggregate.column)
            return [str(math.floor(end)) for end in low.tolist()], [str(math.ceil(end)) for end in high.tolist()]
        spread = self._spread(aggregate.column)
        if aggregate.kind in QUANTILES:
            bars = self._bars(spread.joint)
            found = [ranked.bar(aggregate, kind, bars) for ranked in spread.ranked]
            return [low for low, _ in found], [high for _, high in found]
        ends, enough = self._moment_bar(aggregate.kind, aggregate.column), _enough(aggregate.kind, spread)
        return _texts(kind, ends[0], enough), _texts(kind, ends[1], enough)

    def _count_bar(self, column: int | None) -> Ends:
        """The error bars of the groups' rows, or of those in which ``column`` is not NULL."""
        if column is not None and not self.schema.coded[column].has_null:
            return self._count_bar(None)
        spread = None if column is None else self._spread(column)
        rows = self.groups.rows if spread is None else spread.known
        joint = self.groups.joint
        if joint is None:  # the bar of the WHERE is known
            total = self.groups.total
            share = rows / total.rows if total.rows else np.ones(1)
            return share * total.low, share * total.high
        return self._bars(joint if spread is None else spread.joint, joint).of_counts(rows)

    def _moment_bar(self, kind: str, column: int) -> Ends:
        spread = self._spread(column)
        bars = self._bars(spread.joint)
        if kind in (SUM, AVERAGE):
            ends = bars.of_mean(spread.owner, spread.rows, spread.numbers, spread.means)
            return ends if kind == AVERAGE else _products(self._count_bar(column), ends)
        low, high = bars.of_mean(spread.owner, spread.rows, spread.squares, spread.variances)
        return _deviation(kind, low, spread), _deviation(kind, high, spread)

    def _bars(self, found: Joint, shaped: Joint | None = None) -> Bars:
        """Error bars of what was ``found``; by the shape of another question, if it is given."""
        assert self.calibration is not None
        certain = found.counted and found.total.low == found.total.high
        shape = found.shape if shaped is None else shaped.shape
        return Bars(self.calibration, self.schema.rows, shape, certain, found.disagreement)

    def _spread(self, column: int) -> GroupValueDistribution:
        if column not in self._spreads:
            self._spreads[column] = self._spread_of(column)
        return self._spreads[column]

    def _spread_of(self, column: int) -> GroupValueDistribution:
        schema, places, groups = self.schema, self.selection.groups, self.groups
        parts = cut_cells(self.compiler.lines, self.rows.question.condition, column)
        values, count = Values(schema.coded[column], parts), len(groups.rows)
        if column in places and groups.joint is not None:
            own = groups.codes[:, places.index(column)]
            return GroupValueDistribution(values, count, np.arange(count), own, groups.rows, groups.joint)
        joint = self.rows.joint(_names(schema, (*places, column)), groups=len(places))
        keys = groups.keys(groups.codes, schema, places)
        wanted = groups.keys(joint.codes, schema, places)
        kept = np.isin(wanted, keys)
        owner, rows = np.searchsorted(keys, wanted[kept]), joint.rows[kept]
        sums = np.bincount(owner, rows, count)
        scales = np.divide(groups.rows, sums, out=np.zeros(count), where=sums > 0)
        return GroupValueDistribution(values, count, owner, joint.codes[kept, -1], rows * scales[owner], joint)


def _products(counts: Ends, means: Ends) -> Ends:
    """The least and the greatest product of two that lie between their ends."""
    corners = np.stack([count * mean for count in counts for mean in means])
    return corners.min(axis=0), corners.max(axis=0)


def _moment(kind: str, spread: GroupValueDistribution) -> FloatArray:
    if kind == SUM:
        return spread.sums
    return spread.means if kind == AVERAGE else _deviation(kind, spread.variances, spread)


def _deviation(kind: str, variances: FloatArray, spread: GroupValueDistribution) -> FloatArray:
    """The variance or its root, of the rows or of what they are a sample of."""
    assert kind in DEVIATIONS, f"{kind} has no value here"
    if kind.endswith("samp"):
        variances = variances * spread.whole / np.maximum(spread.whole - 1, 1)
    return np.sqrt(variances) if kind.startswith("stddev") else variances


def _enough(kind: str, spread: GroupValueDistribution) -> BoolArray:
    """Which groups have rows enough for an aggregate."""
    return spread.whole > (1 if kind.endswith("samp") else 0)


def _texts(kind: str, numbers: FloatArray, enough: BoolArray) -> Texts:
    """Numbers as DuckDB prints them; NULL where there are not rows enough."""
    return [_text(kind, number) if known else None for number, known in zip(numbers.tolist(), enough, strict=True)]


def _text(kind: str, number: float) -> str:
    return repr(number) if kind == "DOUBLE" else written(kind, number)


def _names(schema: Schema, places: Sequence[int]) -> list[str]:
    return [schema.coded[place].name for place in places]
