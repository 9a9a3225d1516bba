"""Joint row counts of some columns' values among the rows of a condition."""

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

MOST_COMBINATIONS = 1 << 62  # that can be numbered
LEAST_HITS_ALONE = 30  # of a condition on text, from which its groups are those of the hits


@dataclass(frozen=True, eq=False)
class Joint:
    """Combinations of codes of some columns, and how many rows of a condition have each.

    ``columns`` are places in the schema; ``codes`` (combinations, columns) rise from row to row, and combinations that
    no row is believed to have are left out. ``rows`` add up to those of ``total``, the condition's own count. Before
    they were made to, their sum was off from it by the factor ``1 + disagreement``: which columns are asked together
    decides which conditionals of the model are used, and these need not agree. ``exact`` says that nothing was sampled,
    ``counted`` that the rows are the table's own. ``shape`` is that of a question for one combination. If
    evidence rows were ``observed``, ``prior`` is what the model alone says, and ``bars`` has ``rows`` with the numbers
    between which each should lie.
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
    """What evidence rows say of groups, and how far the model is to be trusted beside them.

    A ``vague`` question is one that the model answers by a grid's knots, or the like. The evidence is ``alone`` if the
    model is not asked: of a condition on text with some hits, its groups would be further off than those of the hits.
    """

    evidence: EvidenceValues
    calibration: Calibration
    vague: bool
    alone: bool = False

    @classmethod
    def of(cls, schema: Schema, hits: Hits, question: Question, calibration: Calibration) -> ObservedGroups:
        """That of a ``question`` with these hits. Of one that the model knows in part, no error is calibrated."""
        known = calibration if question.among is None else Calibration((), calibration.level)
        on_text = any(box.texts for box in question.region.boxes)
        alone = on_text and hits.count >= LEAST_HITS_ALONE
        return cls(EvidenceValues(schema, hits), known, not question.certain, alone)

    def fused(self, prior: FloatArray, seen: FloatArray, total: Estimate, shape: Shape) -> GroupCounts:
        """The rows of groups that have ``seen`` hits, where the model says ``prior``."""
        if self.alone:
            return counts_of_hits(seen, total, self.evidence.hits.count)
        errors = model_errors(self.calibration, prior, shape)
        return fused_counts(prior, seen, total, self.evidence.hits.count, errors)

    def added_to(self, found: Joint) -> Joint:
        """What the model ``found``, and the hits, together; the table's own counts stay as they are."""
        if found.counted and not self.vague:
            return found
        evidence, shape = self.evidence, replace(found.shape, vague=self.vague)
        sizes = [evidence.schema.coded_column(column).size for column in found.columns]
        counts = tally([evidence.codes(column) for column in found.columns], sizes)
        codes, prior, seen = merged(found.codes, found.rows, *counts, sizes)
        bars = self.fused(prior, seen, found.total, shape)
        return replace(
            found, codes=codes, rows=bars.rows, counted=False, shape=shape, observed=self, prior=prior, bars=bars
        )

    @property
    def decides(self) -> bool:
        """Whether no model is asked: the evidence is the whole table, or knows better."""
        return self.evidence.whole or self.alone

    def counted(self, region: Region, total: Estimate, axes: Sequence[Axis]) -> Joint:
        """The joint counts by the evidence, which decides them."""
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
    """The rows of ``region``, of which there are ``total``, by the codes of ``columns``.

    The first ``groups`` columns keep particles for each of their values; the others share those within each. What was
    ``observed`` in evidence rows is joined with the model's answer.
    """
    axes = axes_of(schema, columns)
    if np.prod([float(axis.size) for axis in axes]) > MOST_COMBINATIONS:
        raise UnsupportedQueryError("the columns have too many combinations of values: use fewer columns")
    if observed is not None and observed.decides:
        return observed.counted(region, total, axes)
    found = joined(region, total, axes, joint_masses(runtimes, region, axes, groups, seed))
    return found if observed is None else observed.added_to(found)


def joined(region: Region, total: Estimate, axes: Sequence[Axis], found: JointDistribution) -> Joint:
    """What ``found`` says of the rows of ``region``, of which there are ``total``."""
    mass = float(found.masses.sum())
    rows = found.masses * (total.rows / mass if mass > 0 else 0.0)
    disagreement = mass / total.selectivity - 1.0 if total.selectivity > 0 else 0.0
    shape = _shape(region, axes)
    columns = tuple(axis.column for axis in axes)
    return Joint(columns, found.codes, rows, total, disagreement, found.exact, found.counted, shape)


def axes_of(schema: Schema, columns: Sequence[int]) -> list[Axis]:
    """What the engine needs to know of columns by which rows are grouped."""
    return [
        Axis(index, schema.positions(index), column.radices, column.size)
        for index, column in ((index, schema.coded_column(index)) for index in columns)
    ]


def _shape(region: Region, axes: Sequence[Axis]) -> Shape:
    """The shape of the question for one value of each axis, besides what the region asks."""
    single = [Filter(axis.positions, axis.listed(np.arange(axis.size) == 0)) for axis in axes]
    own = {axis.positions for axis in axes}
    boxes = tuple(
        Box((*(item for item in box.filters if item.positions not in own), *single), box.texts) for box in region.boxes
    )
    return Shape.of(replace(region, boxes=boxes))
