"""Marginal distributions of several columns in a region. Columns after all filters in the order share one walk.

The conditional of such a column can be computed from the last particles of the walk, which are the same for every
column. So one walk and one pass over its particles give the marginals of all these columns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.cancellation import propagate
from countless.engine.answer import Trace, Traced
from countless.engine.columns.runtime import Runtime, softmax
from countless.engine.columns.trace import traced
from countless.engine.distributions.joint import (
    LEAST,
    Axis,
    BoxMasses,
    JointDistribution,
    counted,
    masses_of_box,
    summed,
    with_axes,
)
from countless.engine.distributions.row_reader import RowReader, present
from countless.engine.runtimes import Runtimes
from countless.region import Box, Region


def marginal_masses(runtimes: Runtimes, region: Region, axes: Sequence[Axis], seed: int) -> list[JointDistribution]:
    """The result of :func:`.joint_masses` for each axis alone. Axes are computed in parallel."""
    shared: list[dict[int, BoxMasses]] = []  # for each box, the masses by column
    for box in region.boxes:
        last_axes = _axes_after_filters(runtimes, box, axes)
        shared.append(_masses_of_one_walk(runtimes, box, last_axes, seed) if len(last_axes) > 1 else {})

    def marginal_of(axis: Axis) -> JointDistribution:
        masses = [
            by_column[axis.column] if axis.column in by_column else masses_of_box(runtimes, box, [axis], 1, seed)
            for box, by_column in zip(region.boxes, shared, strict=True)
        ]
        return summed(masses, [axis])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(propagate(marginal_of), axes))


def _axes_after_filters(runtimes: Runtimes, box: Box, axes: Sequence[Axis]) -> list[Axis]:
    """The axes that can share a walk: of one position, after all filters in every order, and without exact counts."""
    if box.texts or not box.filters:
        return []
    filtered = {position for box_filter in box.filters for position in box_filter.positions}
    last_ranks = [max(runtime.order.index(position) for position in filtered) for runtime in runtimes.columns]
    return [
        axis
        for axis in axes
        if len(axis.positions) == 1
        and all(
            runtime.order.index(axis.positions[0]) > last_rank
            for runtime, last_rank in zip(runtimes.columns, last_ranks, strict=True)
        )
        and counted(runtimes, box, [axis]) is None
    ]


def _masses_of_one_walk(runtimes: Runtimes, box: Box, axes: Sequence[Axis], seed: int) -> dict[int, BoxMasses]:
    """The masses in ``box`` by column, from one walk.

    The walk goes one position beyond the filters and sums that position, so that the particles before it are thinned.
    """
    extended = runtimes.hinted(with_axes(box, axes[:1]))
    masses = {axis.column: np.zeros(axis.size) for axis in axes}
    exact = True
    for order_index, runtime in enumerate(runtimes.columns):
        rows = runtimes.once(
            ("shared", box, axes[0].column, seed, order_index),
            partial(_last_particles, runtimes, extended, seed, order_index),
        )
        exact &= rows.exact
        for column, marginal in _conditionals(runtime, rows.symbols, rows.masses, axes):
            masses[column] += marginal / len(runtimes.columns)
    return {column: (np.arange(len(mass)), mass, exact, False) for column, mass in masses.items()}


def _last_particles(runtimes: Runtimes, box: Box, seed: int, order_index: int) -> Traced:
    """The weighted rows of ``box`` under one of the orders."""
    budget = max(1, LEAST // len(runtimes.columns))
    return traced([runtimes.columns[order_index]], Trace(box, expand=False), budget, seed + order_index)


def _conditionals(
    runtime: Runtime[Any], symbols: IntArray, masses: FloatArray, axes: Sequence[Axis]
) -> list[tuple[int, FloatArray]]:
    """For each axis its column and the mass of each of its symbols, given weighted rows."""
    reader = RowReader.of(runtime, len(symbols))
    for position in present(runtime, symbols):
        reader.read(position, symbols[:, position])
    marginals = []
    for axis in sorted(axes, key=lambda axis: runtime.order.index(axis.positions[0])):
        shares = softmax(runtime.logits(reader.state, axis.positions[0]))
        marginals.append((axis.column, masses @ shares))
    return marginals
