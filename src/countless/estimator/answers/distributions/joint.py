"""Joint counts: the rows of each combination of some columns' values, among the rows of a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.data.evidence import Hits
from countless.engine.distributions.joint import Axis, JointDistribution, joint_masses
from countless.engine.runtimes import Runtimes
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.aggregates.group_fusion import GroupCounts, counts_of_hits, fused_counts, model_errors
from countless.estimator.answers.distributions.evidence_values import EvidenceValues, merged, tally
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import Calibration, Shape
from countless.query.question import Question
from countless.region import Box, Filter, Region

MOST_COMBINATIONS = 1 << 62  # combinations are numbered with 64 bits
LEAST_HITS_ALONE = 30  # hits of a condition on text, from which its groups are counted by hits alone


@dataclass(frozen=True, eq=False)
class Joint:
    """Combinations of codes of some columns, and how many rows of a condition have each.

    Attributes:
        columns: Indexes of the columns in the schema.
        codes: The combinations (combinations, columns), sorted; combinations without rows are left out.
        rows: The rows of each combination. They were scaled to add up to the rows of ``total``.
        total: The estimate for the condition.
        disagreement: Before scaling, the rows added up to ``1 + disagreement`` times the total. Different columns use
            different conditionals of the model, which need not agree.
        exact: Nothing was sampled.
        counted: The rows are exact counts.
        shape: The shape of a question for one combination.
        observed: The evidence rows, if there are any.
        prior: The rows by the model alone, if there are evidence rows.
        bars: The rows with their error bars, if there are evidence rows.
    """

    columns: tuple[int, ...]
    codes: IntArray
    rows: FloatArray
    total: Estimate
    disagreement: float
    exact: bool
    counted: bool
    shape: Shape
    observed: ObservedGroups | None = None
    prior: FloatArray | None = None
    bars: GroupCounts | None = None


@dataclass(frozen=True, eq=False)
class ObservedGroups:
    """The evidence about groups, and the calibration of the model's errors.

    The question is ``vague`` if the model answers it approximately, such as by a grid's knots. The evidence is
    ``alone`` if the model is not asked: for a condition on text with enough hits, the hits tell the groups better.
    """

    evidence: EvidenceValues
    calibration: Calibration
    vague: bool
    alone: bool = False

    @classmethod
    def of(cls, schema: Schema, hits: Hits, question: Question, calibration: Calibration) -> ObservedGroups:
        """The evidence of a ``question`` with these hits. If the model knows it only in part, nothing is calibrated."""
        calibration = calibration if question.among is None else Calibration((), calibration.level)
        has_text_filter = any(box.texts for box in question.region.boxes)
        alone = has_text_filter and hits.count >= LEAST_HITS_ALONE
        return cls(EvidenceValues(schema, hits), calibration, not question.certain, alone)

    def fused(self, prior: FloatArray, hits: FloatArray, total: Estimate, shape: Shape) -> GroupCounts:
        """The rows of groups, from the model's ``prior`` and their ``hits``."""
        if self.alone:
            return counts_of_hits(hits, total, self.evidence.hits.count)
        errors = model_errors(self.calibration, prior, shape)
        return fused_counts(prior, hits, total, self.evidence.hits.count, errors)

    def fused_with(self, joint: Joint) -> Joint:
        """The model's joint counts, fused with the hits. Exact counts stay as they are."""
        if joint.counted and not self.vague:
            return joint
        evidence, shape = self.evidence, replace(joint.shape, vague=self.vague)
        sizes = [evidence.schema.coded_column(column).size for column in joint.columns]
        counts = tally([evidence.codes(column) for column in joint.columns], sizes)
        codes, prior, hits = merged(joint.codes, joint.rows, *counts, sizes)
        bars = self.fused(prior, hits, joint.total, shape)
        return replace(
            joint, codes=codes, rows=bars.rows, counted=False, shape=shape, observed=self, prior=prior, bars=bars
        )

    @property
    def decides(self) -> bool:
        """Whether the model is not asked, because the evidence is the whole table or tells the groups better."""
        return self.evidence.whole or self.alone

    def counted(self, region: Region, total: Estimate, axes: Sequence[Axis]) -> Joint:
        """The joint counts by evidence rows alone."""
        columns = tuple(axis.column for axis in axes)
        codes, counts = tally([self.evidence.codes(column) for column in columns], [axis.size for axis in axes])
        rows: FloatArray = counts.astype(np.float64)
        whole = self.evidence.whole
        bars = GroupCounts(rows, rows, rows) if whole else counts_of_hits(rows, total, self.evidence.hits.count)
        return Joint(columns, codes, bars.rows, total, 0.0, whole, whole, _shape(region, axes), self, bars.rows, bars)


def joint(
    schema: Schema,
    runtimes: Runtimes,
    region: Region,
    total: Estimate,
    columns: Sequence[int],
    groups: int,
    seed: int,
    observed: ObservedGroups | None = None,
) -> Joint:
    """Count the ``total`` rows of ``region`` by the codes of ``columns``.

    Each value of the first ``groups`` columns has particles of its own, which the values of the other columns share.
    The evidence that was ``observed`` is fused with the model's counts.
    """
    axes = axes_of(schema, columns)
    if np.prod([float(axis.size) for axis in axes]) > MOST_COMBINATIONS:
        raise UnsupportedQueryError("the columns have too many combinations of values: use fewer columns")
    if observed is not None and observed.decides:
        return observed.counted(region, total, axes)
    model_joint = scaled_joint(region, total, axes, joint_masses(runtimes, region, axes, groups, seed))
    return model_joint if observed is None else observed.fused_with(model_joint)


def scaled_joint(region: Region, total: Estimate, axes: Sequence[Axis], distribution: JointDistribution) -> Joint:
    """The model's distribution as counts that add up to the ``total`` rows of ``region``."""
    mass = float(distribution.masses.sum())
    rows = distribution.masses * (total.rows / mass if mass > 0 else 0.0)
    disagreement = mass / total.selectivity - 1.0 if total.selectivity > 0 else 0.0
    shape = _shape(region, axes)
    columns = tuple(axis.column for axis in axes)
    return Joint(
        columns, distribution.codes, rows, total, disagreement, distribution.exact, distribution.counted, shape
    )


def axes_of(schema: Schema, columns: Sequence[int]) -> list[Axis]:
    """The columns to group by, as the engine needs them."""
    return [
        Axis(index, schema.positions(index), column.radices, column.size)
        for index, column in ((index, schema.coded_column(index)) for index in columns)
    ]


def _shape(region: Region, axes: Sequence[Axis]) -> Shape:
    """The shape of the question for one value of each axis, in addition to the filters of the region."""
    single = [Filter(axis.positions, axis.listed(np.arange(axis.size) == 0)) for axis in axes]
    axis_positions = {axis.positions for axis in axes}
    boxes = tuple(
        Box((*(item for item in box.filters if item.positions not in axis_positions), *single), box.texts)
        for box in region.boxes
    )
    return Shape.of(replace(region, boxes=boxes))
