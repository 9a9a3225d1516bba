"""Joint row counts of some columns' values among the rows of a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.data.columns.schema import Schema
from countless.data.evidence import Hits
from countless.engine.distributions.joint import Axis, JointDistribution, spread
from countless.engine.runtimes import Runtimes
from countless.errors import UnsupportedQueryError
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.evidence_values import EvidenceValues, merged, tally
from countless.estimator.answers.group_fusion import GroupCounts, fused_counts, model_errors
from countless.estimator.calibration.conformal import Calibration, Shape
from countless.region import Box, Filter, Region

MOST_COMBINATIONS = 1 << 62  # that can be numbered


@dataclass(frozen=True, eq=False)
class Joint:
    """Combinations of codes of some columns, and how many rows of a condition have each.

    ``columns`` are places in the schema; ``codes`` (combinations, columns) rise from row to row, and combinations that
    no row is believed to have are left out. ``rows`` add up to those of ``total``, the condition's own count. Before
    they were made to, their sum was off from it by the factor ``1 + disagreement``: which columns are asked together
    decides which conditionals of the model are used, and these need not agree. ``exact`` says that nothing was sampled,
    ``counted`` that the rows are the table's own. ``shape`` is that of a question for one combination. With
    ``evidence``, ``prior`` is what the model alone says, and ``bars`` has ``rows`` with the numbers between which each
    should lie.
    """

    columns: tuple[int, ...]
    codes: IntArray
    rows: FloatArray
    total: Estimate
    disagreement: float
    exact: bool
    counted: bool
    shape: Shape
    evidence: EvidenceValues | None = None
    prior: FloatArray | None = None
    bars: GroupCounts | None = None


def joint(
    schema: Schema,
    runtimes: Runtimes,
    region: Region,
    total: Estimate,
    columns: Sequence[int],
    groups: int,
    seed: int,
    hits: Hits | None = None,
    calibration: Calibration | None = None,
) -> Joint:
    """The rows of ``region``, of which there are ``total``, by the codes of ``columns``.

    The first ``groups`` columns keep particles for each of their values; the others share those within each. With
    ``hits``, the evidence rows of the region, and a calibration, the model's answer and the hits are fused.
    """
    axes = axes_of(schema, columns)
    if np.prod([float(axis.size) for axis in axes]) > MOST_COMBINATIONS:
        raise UnsupportedQueryError("the columns have too many combinations of values together: take fewer columns")
    if hits is not None and EvidenceValues(schema, hits).whole:
        return counted_joint(schema, hits, region, total, axes)
    found = joined(region, total, axes, spread(runtimes, region, axes, groups, seed))
    return found if hits is None or calibration is None else with_evidence(found, schema, hits, calibration)


def with_evidence(found: Joint, schema: Schema, hits: Hits, calibration: Calibration) -> Joint:
    """What the model ``found``, and the hits, together; the table's own counts stay as they are."""
    if found.counted and found.total.exact:
        return found
    evidence, sizes = EvidenceValues(schema, hits), [schema.coded[column].size for column in found.columns]
    counts = tally([evidence.codes(column) for column in found.columns], sizes)
    codes, prior, seen = merged(found.codes, found.rows, *counts, sizes)
    bars = fused_counts(prior, seen, found.total, hits.count, model_errors(calibration, prior, found.shape))
    return replace(found, codes=codes, rows=bars.rows, counted=False, evidence=evidence, prior=prior, bars=bars)


def counted_joint(schema: Schema, hits: Hits, region: Region, total: Estimate, axes: Sequence[Axis]) -> Joint:
    """The joint counts where the evidence is the whole table: no model is asked."""
    evidence, columns = EvidenceValues(schema, hits), tuple(axis.column for axis in axes)
    codes, counts = tally([evidence.codes(column) for column in columns], [axis.size for axis in axes])
    rows: FloatArray = counts.astype(np.float64)
    shape, bars = _shape(region, axes), GroupCounts(rows, rows, rows)
    return Joint(columns, codes, rows, total, 0.0, True, True, shape, evidence, rows, bars)


def joined(region: Region, total: Estimate, axes: Sequence[Axis], found: JointDistribution) -> Joint:
    """What ``found`` says of the rows of ``region``, of which there are ``total``."""
    mass = float(found.masses.sum())
    rows = found.masses * (total.rows / mass if mass > 0 else 0.0)
    disagreement = mass / total.selectivity - 1.0 if total.selectivity > 0 else 0.0
    shape = _shape(region, axes)
    columns = tuple(axis.column for axis in axes)
    return Joint(columns, found.codes, rows, total, disagreement, found.exact, found.counted, shape)


def axes_of(schema: Schema, columns: Sequence[int]) -> list[Axis]:
    """What the engine wants to know of columns that rows are told apart by."""
    return [
        Axis(column, schema.positions(column), schema.coded[column].radices, schema.coded[column].size)
        for column in columns
    ]


def _shape(region: Region, axes: Sequence[Axis]) -> Shape:
    """The shape of the question for one value of each axis, besides what the region asks."""
    single = [Filter(axis.positions, axis.listed(np.arange(axis.size) == 0)) for axis in axes]
    own = {axis.positions for axis in axes}
    boxes = tuple(
        Box((*(item for item in box.filters if item.positions not in own), *single), box.texts) for box in region.boxes
    )
    return Shape.of(replace(region, boxes=boxes))
