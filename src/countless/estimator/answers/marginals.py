"""Marginal distributions of several columns under one condition."""

from __future__ import annotations

import time
from collections.abc import Sequence

from countless.data.columns.schema import Schema
from countless.data.evidence import Hits
from countless.engine.distributions.marginals import spreads
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.distribution import BinsWanted, Distribution, distribution, wanted_bins
from countless.estimator.answers.estimate import Estimate
from countless.estimator.answers.evidence_values import EvidenceValues
from countless.estimator.answers.joint import axes_of, counted_joint, joined, with_evidence
from countless.estimator.calibration.conformal import Calibration
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
    hits: Hits | None = None,
) -> list[Distribution]:
    """How the rows of ``region``, of which there are ``total``, are spread over the values of each of ``columns``.

    ``hits`` are the evidence rows of the region, if there are any.
    """
    wanted = wanted_bins([schema.coded[column] for column in columns], bins)
    started = time.perf_counter()
    axes = axes_of(schema, columns)
    if hits is not None and EvidenceValues(schema, hits).whole:
        joints = [counted_joint(schema, hits, region, total, [axis]) for axis in axes]
    else:
        spread = zip(axes, spreads(runtimes, region, axes, seed), strict=True)
        joints = [joined(region, total, [axis], found) for axis, found in spread]
        if hits is not None:
            joints = [with_evidence(joint, schema, hits, calibration) for joint in joints]
    found = []
    for axis, joint in zip(axes, joints, strict=True):
        own = {name: wanted[name] for name in (schema.coded[axis.column].name,) if name in wanted}
        found.append(distribution(schema, joint, calibration, own, "rows", started))
    return found
