"""Marginal distributions of several columns under one condition."""

from __future__ import annotations

from collections.abc import Sequence

from countless.data.columns.schema import Schema
from countless.engine.distributions.marginals import marginal_masses
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.distributions.distribution import BinsWanted, Distribution, distribution, wanted_bins
from countless.estimator.answers.distributions.joint import ObservedGroups, axes_of, joined
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
    """How the rows of ``region``, of which there are ``total``, are spread over the values of each of ``columns``.

    What was ``observed`` in evidence rows is joined with the model's answer.
    """
    wanted = wanted_bins([schema.coded[column] for column in columns], bins)
    started = answer_clock()
    axes = axes_of(schema, columns)
    if observed is not None and observed.decides:
        joints = [observed.counted(region, total, [axis]) for axis in axes]
    else:
        marginals = zip(axes, marginal_masses(runtimes, region, axes, seed), strict=True)
        joints = [joined(region, total, [axis], marginal) for axis, marginal in marginals]
        if observed is not None:
            joints = [observed.added_to(joint) for joint in joints]
    found = []
    for axis, joint in zip(axes, joints, strict=True):
        own = {name: wanted[name] for name in (schema.coded[axis.column].name,) if name in wanted}
        found.append(distribution(schema, joint, calibration, own, "rows", started))
    return found
