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
from countless.estimator.answers.aggregates.groups import LEAST_ROWS, DerivedColumns, Groups
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

ValueDistribution = GroupValueDistribution | FusedValueDistribution

DEVIATIONS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")


def answer_select(
    prepare: Callable[[str | None], PreparedQuestion],
    compiler: Compiler,
    outer: Outer,
    sql: str,
    calibration: Calibration,
    intervals: bool = False,
    least_hits: int = 1,
) -> QueryResult:
    """The result of the statement ``sql``, with ``intervals`` also its error bars.

    ``prepare`` prepares the question of a condition; None is every row. An expression can put a whole row into one
    value, so of its values only those that at least ``least_hits`` evidence rows share are shown.
    """
    started = answer_clock()
    selection = read_select(sql, compiler.schema, compiler.evidence is not None)
    header = outer.header(selection)
    with pointing(selection):
        aggregates = GroupAggregates(
            prepare(selection.where), compiler, selection, header.types, calibration, least_hits
        )
        table = aggregates.table(intervals)
    frame = outer.run(selection, header, table)
    return QueryResult(
        frame.names,
        frame.types,
        frame.columns,
        count=aggregates.groups.total,
        disagreement=aggregates.disagreement,
        left_out_rows=aggregates.groups.left_out,
        ms=(answer_clock() - started) * 1e3,
    )


class GroupAggregates:
    """The aggregates of every group of one statement, and their error bars; ``types`` are the aggregates' types."""

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
        self._distributions: dict[int | RowExpression, ValueDistribution] = {}
        self._joints: list[Joint] = []

    @property
    def disagreement(self) -> float:
        """The largest disagreement of the joint counts that were used."""
        joints = [*self._joints, *([] if self.groups.joint is None else [self.groups.joint])]
        return max((abs(joint.disagreement) for joint in joints), default=0.0)

    def table(self, intervals: bool) -> GroupTable:
        """The table of groups and aggregates, which the outer statement reads."""
        typed_aggregates = list(zip(self.selection.aggregates, self.types, strict=True))
        aggregates = [self._values(aggregate, kind) for aggregate, kind in typed_aggregates]
        ends = [self._bar(aggregate, kind) for aggregate, kind in typed_aggregates] if intervals else []
        column_texts = [Values(column).texts for column in self.groups.columns]
        texts = [[values[code] for code in self.groups.codes[:, index]] for index, values in enumerate(column_texts)]
        types = [column.type for column in self.groups.columns]
        return GroupTable(texts, aggregates, len(self.groups.rows), types, ends)

    def _values(self, aggregate: Aggregate, kind: str) -> Texts:
        """The aggregate of every group, as DuckDB prints it."""
        if aggregate.column is None:
            return [str(round(rows)) for rows in self.groups.rows.tolist()]
        distribution = self._distribution(aggregate)
        if aggregate.kind == COUNT:
            is_known = distribution.has_any | (self.groups.rows < LEAST_ROWS)
            return [str(count) if known else None for count, known in zip(distribution.count, is_known, strict=True)]
        if aggregate.kind in QUANTILES:
            return distribution.quantiles(aggregate, kind)
        return _texts(kind, _moment(aggregate.kind, distribution), self._has_value(aggregate, distribution))

    def _bar(self, aggregate: Aggregate, kind: str) -> tuple[Texts, Texts]:
        """The low and the high end of every group's error bar, as DuckDB prints them."""
        if aggregate.column is None or aggregate.kind == COUNT:
            low, high = self._count_bar(None if aggregate.column is None else self._distribution(aggregate))
            return [str(math.floor(end)) for end in low.tolist()], [str(math.ceil(end)) for end in high.tolist()]
        distribution = self._distribution(aggregate)
        if aggregate.kind in QUANTILES:
            return distribution.quantile_ends(aggregate, kind)
        low, high = self._moment_bar(aggregate.kind, distribution)
        has_value = self._has_value(aggregate, distribution)
        return _texts(kind, low, has_value), _texts(kind, high, has_value)

    def _has_value(self, aggregate: Aggregate, distribution: ValueDistribution) -> BoolArray:
        """Which groups have enough rows for an aggregate, and enough hits if it is of an expression."""
        has_value: BoolArray = distribution.count > (1 if aggregate.kind.endswith("samp") else 0)
        if isinstance(aggregate.column, RowExpression) and isinstance(distribution, FusedValueDistribution):
            has_value = has_value & (distribution.sample.hits >= self.least_hits)
        return has_value

    def _count_bar(self, distribution: ValueDistribution | None) -> Ends:
        """The error bars of the groups' rows, or of those whose value in the ``distribution`` is not NULL."""
        groups, total = self.groups, self.groups.total
        if isinstance(distribution, FusedValueDistribution):
            return distribution.non_null_ends(*self._count_bar(None))
        if groups.ends is not None and distribution is None:
            return groups.ends
        rows = groups.rows if distribution is None else distribution.non_null
        if groups.joint is None:  # the error bar of the whole condition is known
            share = rows / total.rows if total.rows else np.ones(1)
            return share * total.low, share * total.high
        bars = self._bars(groups.joint) if distribution is None else distribution.bars.shaped(groups.joint.shape)
        return bars.of_counts(rows)

    def _moment_bar(self, kind: str, distribution: ValueDistribution) -> Ends:
        if kind == AVERAGE:
            return distribution.mean_ends()
        if kind == SUM:
            low, high = _products(self._count_bar(distribution), distribution.mean_ends())
            return np.fmin(low, distribution.sums), np.fmax(high, distribution.sums)
        low, high = distribution.variance_ends()
        return _deviation(kind, low, distribution), _deviation(kind, high, distribution)

    def _bars(self, joint: Joint | None) -> Bars:
        """Error bars for joint counts; without a ``joint`` they are unbounded."""
        if joint is None:
            return Bars(self.calibration, self.schema.rows, Shape(), False)
        certain = joint.counted and self.rows.question.certain
        return Bars(self.calibration, self.schema.rows, joint.shape, certain, joint.disagreement)

    def _distribution(self, aggregate: Aggregate) -> ValueDistribution:
        """The distribution of each group's rows over the values of the aggregate's column."""
        column = aggregate.column
        assert column is not None
        if isinstance(column, RowExpression) and aggregate.kind in QUANTILES and self.least_hits > 1:
            raise UnsupportedQueryError(
                "a quantile of an expression is a value of a single row, which this service does not show"
            )
        if isinstance(column, RowExpression) and aggregate.kind not in (COUNT, *QUANTILES):
            column = replace(column, sql=f"CAST({column.sql} AS DOUBLE)")
        if column not in self._distributions:
            self._distributions[column] = (
                self._model_distribution(column) if isinstance(column, int) else self._evidence_distribution(column)
            )
        return self._distributions[column]

    def _evidence_distribution(self, column: int | RowExpression) -> FusedValueDistribution:
        """The distribution by evidence rows alone."""
        assert self.derived is not None
        derived, codes = self.derived.column(column)
        values, groups = Values(derived), len(self.groups.rows)
        empty: IntArray = np.empty(0, dtype=np.int64)
        model = GroupValueDistribution(values, groups, empty, empty, np.empty(0), self._bars(None))
        sample = ColumnSample.of(values, groups, self.groups.groups_of_hits(self.derived), codes)
        return FusedValueDistribution(model, sample, self.groups.rows, self._count_bar(None)[1])

    def _model_distribution(self, column: int) -> ValueDistribution:
        """The distribution by the model, fused with the hits if there are evidence rows."""
        groups, indexes = self.groups, self.groups.column_indexes
        if indexes is None or (groups.joint is not None and _is_by_hits_alone(groups.joint)):
            return self._evidence_distribution(column)
        parts = cut_cells(self.compiler.lines, self.rows.question.condition, column)
        values, count = Values(self.schema.coded[column], parts), len(groups.rows)
        if column in indexes and groups.joint is not None:
            joint, group_ids = groups.joint, np.arange(count)
            codes, rows = groups.codes[:, indexes.index(column)], groups.rows
        else:
            joint = self.rows.joint_of((*indexes, column), len(indexes))
            self._joints.append(joint)
            group_ids, is_in_group = groups.groups_of(joint.codes)
            codes = joint.codes[is_in_group, -1]
            rows = groups.scaled(group_ids, (joint.rows if joint.prior is None else joint.prior)[is_in_group])
        model = GroupValueDistribution(values, count, group_ids, codes, rows, self._bars(joint))
        if joint.observed is None or self.derived is None:
            return model
        evidence = joint.observed.evidence
        sample_values, hit_codes = Values(evidence.column(column)), evidence.hits.codes(column)
        hit_groups = groups.groups_of_hits(self.derived)
        sample = ColumnSample.of(sample_values, count, hit_groups, hit_codes, evidence.codes(column))
        return FusedValueDistribution(model, sample, groups.rows, self._count_bar(None)[1])


def _is_by_hits_alone(joint: Joint) -> bool:
    return joint.observed is not None and joint.observed.alone


def _products(counts: Ends, means: Ends) -> Ends:
    """The least and the greatest product of a count and a mean within their error bars."""
    corners = np.stack([count * mean for count in counts for mean in means])
    return corners.min(axis=0), corners.max(axis=0)


def _moment(kind: str, distribution: ValueDistribution) -> FloatArray:
    if kind == SUM:
        return distribution.sums
    return distribution.means if kind == AVERAGE else _deviation(kind, distribution.variances, distribution)


def _deviation(kind: str, variances: FloatArray, distribution: ValueDistribution) -> FloatArray:
    """The variance or the standard deviation, of the population or of a sample, as ``kind`` says."""
    assert kind in DEVIATIONS, f"{kind} has no value here"
    if kind.endswith("samp"):
        variances = variances * distribution.count / np.maximum(distribution.count - 1, 1)
    return np.sqrt(variances) if kind.startswith("stddev") else variances


def _texts(kind: str, numbers: FloatArray, has_value: BoolArray) -> Texts:
    """Numbers as DuckDB prints them; NULL for groups without a value."""
    return [_text(kind, number) if valid else None for number, valid in zip(numbers.tolist(), has_value, strict=True)]


def _text(kind: str, number: float) -> str:
    return repr(number) if kind == "DOUBLE" else written(kind, number)
