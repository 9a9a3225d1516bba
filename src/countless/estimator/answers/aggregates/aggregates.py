"""Aggregates of groups from value distributions: counts, sums, means, deviations and quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from countless.arrays import BoolArray, FloatArray, IntArray
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.aggregates.aggregate_intervals import Bars, Ends
from countless.estimator.answers.aggregates.groups import LEAST, DerivedColumns, Groups
from countless.estimator.answers.aggregates.result import QueryResult
from countless.estimator.answers.aggregates.value_distributions import (
    ColumnSample,
    FusedValueDistribution,
    GroupValueDistribution,
    Texts,
)
from countless.estimator.answers.distributions.joint import Joint
from countless.estimator.answers.distributions.values import Values
from countless.estimator.calibration.conformal import Calibration, Shape
from countless.query.answer_clock import answer_clock
from countless.query.compile import Compiler
from countless.query.grids.cut_cells import cut_cells
from countless.query.grids.scale import written
from countless.query.select.aggregate_names import QUANTILES
from countless.query.select.outer_statement import GroupTable, Outer
from countless.query.select.selection import AVERAGE, COUNT, SUM, Aggregate, RowExpression, Selection
from countless.query.select.statement import pointing, read_select

if TYPE_CHECKING:
    from countless.estimator.prepared import PreparedQuestion

DEVIATIONS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")


def answered(
    prepare: Callable[[str | None], PreparedQuestion],
    compiler: Compiler,
    outer: Outer,
    sql: str,
    calibration: Calibration,
    intervals: bool = False,
    least_hits: int = 1,
) -> QueryResult:
    """The result of the statement ``sql``; with ``intervals``, error bars too.

    ``prepare`` gives the rows of a condition; None is every row. An expression can put a whole row into one value: of
    expressions, only values that at least ``least_hits`` evidence rows share are shown.
    """
    started = answer_clock()
    selection = read_select(sql, compiler.schema, compiler.evidence is not None)
    header = outer.header(selection)
    with pointing(selection):
        table = GroupAggregates(prepare(selection.where), compiler, selection, header.types, calibration, least_hits)
        made = table.made(intervals)
    frame = outer.run(selection, header, made)
    return QueryResult(
        frame.names,
        frame.types,
        frame.columns,
        count=table.groups.total,
        disagreement=table.disagreement,
        left_out_rows=table.groups.left_out,
        ms=(answer_clock() - started) * 1e3,
    )


class GroupAggregates:
    """The aggregates of every group of one statement, of ``types``, and their error bars."""

    def __init__(
        self,
        rows: PreparedQuestion,
        compiler: Compiler,
        selection: Selection,
        types: Sequence[str],
        calibration: Calibration,
        least_hits: int = 1,
    ) -> None:
        self.rows = rows
        self.least_hits = least_hits
        self.compiler = compiler
        self.schema = compiler.schema
        self.selection = selection
        self.types = types
        self.calibration = calibration
        self.derived = None if rows.evidence is None else DerivedColumns(compiler, rows.evidence)
        self.groups = Groups.of(rows, compiler.schema, selection.groups, self.derived, least_hits)
        self._spreads: dict[int | RowExpression, GroupValueDistribution | FusedValueDistribution] = {}
        self._joints: list[Joint] = []

    @property
    def disagreement(self) -> float:
        """The largest of all that was asked."""
        joints = [*self._joints, *([] if self.groups.joint is None else [self.groups.joint])]
        return max((abs(joint.disagreement) for joint in joints), default=0.0)

    def made(self, intervals: bool) -> GroupTable:
        """The table that the outer statement reads."""
        asked = list(zip(self.selection.aggregates, self.types, strict=True))
        aggregates = [self._values(aggregate, kind) for aggregate, kind in asked]
        ends = [self._bar(aggregate, kind) for aggregate, kind in asked] if intervals else []
        columns = [Values(column).texts for column in self.groups.columns]
        texts = [[column[code] for code in self.groups.codes[:, at]] for at, column in enumerate(columns)]
        types = [column.type for column in self.groups.columns]
        return GroupTable(texts, aggregates, len(self.groups.rows), types, ends)

    def _values(self, aggregate: Aggregate, kind: str) -> Texts:
        """The aggregate of every group, as DuckDB prints it."""
        if aggregate.column is None:
            return [str(round(rows)) for rows in self.groups.rows.tolist()]
        spread = self._spread(aggregate)
        if aggregate.kind == COUNT:
            message = spread.has_any | (self.groups.rows < LEAST)
            return [str(count) if known else None for count, known in zip(spread.whole, message, strict=True)]
        if aggregate.kind in QUANTILES:
            return spread.quantiles(aggregate, kind)
        return _texts(kind, _moment(aggregate.kind, spread), self._enough(aggregate, spread))

    def _bar(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The low and the high end of every group's error bar, as DuckDB prints them."""
        if aggregate.column is None or aggregate.kind == COUNT:
            low, high = self._count_bar(None if aggregate.column is None else self._spread(aggregate))
            return [str(math.floor(end)) for end in low.tolist()], [str(math.ceil(end)) for end in high.tolist()]
        spread = self._spread(aggregate)
        if aggregate.kind in QUANTILES:
            return spread.quantile_ends(aggregate, kind)
        ends, enough = self._moment_bar(aggregate.kind, spread), self._enough(aggregate, spread)
        return _texts(kind, ends[0], enough), _texts(kind, ends[1], enough)

    def _enough(self, aggregate: Aggregate, spread: GroupValueDistribution | FusedValueDistribution) -> BoolArray:
        """Which groups have rows enough for an aggregate, and of an expression hits enough."""
        enough = _enough(aggregate.kind, spread)
        if isinstance(aggregate.column, RowExpression) and isinstance(spread, FusedValueDistribution):
            enough = enough & (spread.sample.hits >= self.least_hits)
        return enough

    def _count_bar(self, spread: GroupValueDistribution | FusedValueDistribution | None) -> Ends:
        """The error bars of the groups' rows, or of those in which the column of ``spread`` is not NULL."""
        groups, total = self.groups, self.groups.total
        if isinstance(spread, FusedValueDistribution):
            return spread.known_ends(*self._count_bar(None))
        if groups.ends is not None and spread is None:
            return groups.ends
        rows = groups.rows if spread is None else spread.known
        if groups.joint is None:  # the bar of the WHERE is known
            share = rows / total.rows if total.rows else np.ones(1)
            return share * total.low, share * total.high
        bars = self._bars(groups.joint) if spread is None else spread.bars.shaped(groups.joint.shape)
        return bars.of_counts(rows)

    def _moment_bar(self, kind: str, spread: GroupValueDistribution | FusedValueDistribution) -> Ends:
        if kind == AVERAGE:
            return spread.mean_ends()
        if kind == SUM:
            low, high = _products(self._count_bar(spread), spread.mean_ends())
            return np.fmin(low, spread.sums), np.fmax(high, spread.sums)
        low, high = spread.variance_ends()
        return _deviation(kind, low, spread), _deviation(kind, high, spread)

    def _bars(self, found: Joint | None) -> Bars:
        """Error bars for what was ``found``; for None they are unbounded."""
        if found is None:
            return Bars(self.calibration, self.schema.rows, Shape(), False)
        certain = found.counted and self.rows.question.certain
        return Bars(self.calibration, self.schema.rows, found.shape, certain, found.disagreement)

    def _spread(self, aggregate: Aggregate) -> GroupValueDistribution | FusedValueDistribution:
        """How the rows of groups are spread over the values of the aggregate's column."""
        column = aggregate.column
        assert column is not None
        if isinstance(column, RowExpression) and aggregate.kind in QUANTILES and self.least_hits > 1:
            raise UnsupportedQueryError(
                "a quantile of an expression is a value of a single row, which this service does not show"
            )
        if isinstance(column, RowExpression) and aggregate.kind not in (COUNT, *QUANTILES):
            column = replace(column, sql=f"CAST({column.sql} AS DOUBLE)")
        if column not in self._spreads:
            self._spreads[column] = self._of_model(column) if isinstance(column, int) else self._of_hits(column)
        return self._spreads[column]

    def _of_hits(self, column: int | RowExpression) -> FusedValueDistribution:
        """The distribution of what only evidence rows have."""
        assert self.derived is not None
        own, codes = self.derived.column(column)
        nothing: IntArray = np.empty(0, dtype=np.int64)
        model = GroupValueDistribution(
            Values(own), len(self.groups.rows), nothing, nothing, np.empty(0), self._bars(None)
        )
        sample = ColumnSample.of(Values(own), len(self.groups.rows), self.groups.owners(self.derived), codes)
        return FusedValueDistribution(model, sample, self.groups.rows, self._count_bar(None)[1])

    def _of_model(self, column: int) -> GroupValueDistribution | FusedValueDistribution:
        """The distribution by the model, joined with the hits if there are evidence rows."""
        groups = self.groups
        if groups.places is None or (groups.joint is not None and _is_of_hits(groups.joint)):
            return self._of_hits(column)
        parts = cut_cells(self.compiler.lines, self.rows.question.condition, column)
        values, count = Values(self.schema.coded[column], parts), len(groups.rows)
        if column in groups.places and groups.joint is not None:
            joint, owner = groups.joint, np.arange(count)
            codes, rows = groups.codes[:, groups.places.index(column)], groups.rows
        else:
            joint = self.rows.joint_of((*groups.places, column), len(groups.places))
            self._joints.append(joint)
            owner, kept = groups.owners_of(joint.codes)
            codes = joint.codes[kept, -1]
            rows = groups.scaled(owner, (joint.rows if joint.prior is None else joint.prior)[kept])
        found = GroupValueDistribution(values, count, owner, codes, rows, self._bars(joint))
        if joint.observed is None or self.derived is None:
            return found
        evidence = joint.observed.evidence
        own, hits = evidence.column(column), evidence.hits.codes(column)
        sample = ColumnSample.of(Values(own), count, groups.owners(self.derived), hits, evidence.codes(column))
        return FusedValueDistribution(found, sample, groups.rows, self._count_bar(None)[1])


def _is_of_hits(joint: Joint) -> bool:
    return joint.observed is not None and joint.observed.alone


def _products(counts: Ends, means: Ends) -> Ends:
    """The least and the greatest product of two that lie between their ends."""
    corners = np.stack([count * mean for count in counts for mean in means])
    return corners.min(axis=0), corners.max(axis=0)


def _moment(kind: str, spread: GroupValueDistribution | FusedValueDistribution) -> FloatArray:
    if kind == SUM:
        return spread.sums
    return spread.means if kind == AVERAGE else _deviation(kind, spread.variances, spread)


def _deviation(kind: str, variances: FloatArray, spread: GroupValueDistribution | FusedValueDistribution) -> FloatArray:
    """The variance or its root, of the rows or of what they are a sample of."""
    assert kind in DEVIATIONS, f"{kind} has no value here"
    if kind.endswith("samp"):
        variances = variances * spread.whole / np.maximum(spread.whole - 1, 1)
    return np.sqrt(variances) if kind.startswith("stddev") else variances


def _enough(kind: str, spread: GroupValueDistribution | FusedValueDistribution) -> BoolArray:
    """Which groups have rows enough for an aggregate."""
    return spread.whole > (1 if kind.endswith("samp") else 0)


def _texts(kind: str, numbers: FloatArray, enough: BoolArray) -> Texts:
    """Numbers as DuckDB prints them; NULL where there are not rows enough."""
    return [_text(kind, number) if known else None for number, known in zip(numbers.tolist(), enough, strict=True)]


def _text(kind: str, number: float) -> str:
    return repr(number) if kind == "DOUBLE" else written(kind, number)
