"""Marginal distributions of several columns under one condition."""

from __future__ import annotations

from collections.abc import Sequence

from countless.data.columns.schema import Schema
from countless.engine.distributions.marginals import marginal_masses
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.distributions.distribution import (
    BinsWanted,
    Distribution,
    bins_by_column,
    distribution,
)
from countless.estimator.answers.distributions.joint import ObservedGroups, axes_of, scaled_joint
from countless.estimator.answers.estimate import Estimate
from countless.estimator.calibration.conformal import Calibration
from countless.query.answer_clock import answer_clock
from countless.region import Region


def distributions(
    schema: Schema,
    runtimes: Runtimes,
    region: Region,
    total: Estimate,
    columns: Sequence[int],
    calibration: Calibration,
    bins: BinsWanted | None,
    seed: int,
    observed: ObservedGroups | None = None,
) -> list[Distribution]:
    """The distribution of the ``total`` rows of ``region`` over the values of each of ``columns``.

    The evidence that was ``observed`` is fused with the model's counts.
    """
    requested = bins_by_column([schema.coded[column] for column in columns], bins)
    started = answer_clock()
    axes = axes_of(schema, columns)
    if observed is not None and observed.decides:
        joints = [observed.counted(region, total, [axis]) for axis in axes]
    else:
        marginals = zip(axes, marginal_masses(runtimes, region, axes, seed), strict=True)
        joints = [scaled_joint(region, total, [axis], marginal) for axis, marginal in marginals]
        if observed is not None:
            joints = [observed.fused_with(joint) for joint in joints]
    results = []
    for axis, joint in zip(axes, joints, strict=True):
        name = schema.coded[axis.column].name
        column_bins = {name: requested[name]} if name in requested else {}
        results.append(distribution(schema, joint, calibration, column_bins, "rows", started))
    return results
