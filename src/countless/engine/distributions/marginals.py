"""Marginal distributions of several columns in a region; columns after all filters share one walk.

A column after every filter in the order has its conditional in reach of the walk's last particles. These are the same
whichever column is asked for, so one walk and one pass over its particles answer for all such columns together.
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
from countless.engine.distributions.joint import LEAST, Axis, JointDistribution, Part, counted, part, summed, with_axes
from countless.engine.distributions.row_reader import RowReader, present
from countless.engine.runtimes import Runtimes
from countless.region import Box, Region


def marginal_masses(runtimes: Runtimes, region: Region, axes: Sequence[Axis], seed: int) -> list[JointDistribution]:
    """What :func:`.joint_masses` finds for each of the axes alone. All cores take part."""
    shared: list[dict[int, Part]] = []
    for box in region.boxes:
        together = _together(runtimes, box, axes)
        shared.append(_shared(runtimes, box, together, seed) if len(together) > 1 else {})

    def one(axis: Axis) -> JointDistribution:
        parts = [
            known[axis.column] if axis.column in known else part(runtimes, box, [axis], 1, seed)
            for box, known in zip(region.boxes, shared, strict=True)
        ]
        return summed(parts, [axis])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(propagate(one), axes))


def _together(runtimes: Runtimes, box: Box, axes: Sequence[Axis]) -> list[Axis]:
    """The axes that one walk answers for: of one position, after all filters in every order, and not counted."""
    if box.texts or not box.filters:
        return []
    filtered = {position for item in box.filters for position in item.positions}
    last = [max(runtime.order.index(position) for position in filtered) for runtime in runtimes.columns]
    return [
        axis
        for axis in axes
        if len(axis.positions) == 1
        and all(
            runtime.order.index(axis.positions[0]) > rank for runtime, rank in zip(runtimes.columns, last, strict=True)
        )
        and counted(runtimes, box, [axis]) is None
    ]


def _shared(runtimes: Runtimes, box: Box, axes: Sequence[Axis], seed: int) -> dict[int, Part]:
    """The parts of ``box`` by column.

    The walk goes one position beyond the filters, where all is summed: the particles before it have been thinned.
    """
    extended = runtimes.hinted(with_axes(box, axes[:1]))
    masses = {axis.column: np.zeros(axis.size) for axis in axes}
    exact = True
    for number, runtime in enumerate(runtimes.columns):
        rows = runtimes.once(
            ("shared", box, axes[0].column, seed, number), partial(_last_particles, runtimes, extended, seed, number)
        )
        exact &= rows.exact
        for column, marginal in _conditionals(runtime, rows.symbols, rows.masses, axes):
            masses[column] += marginal / len(runtimes.columns)
    return {column: (np.arange(len(mass)), mass, exact, False) for column, mass in masses.items()}


def _last_particles(runtimes: Runtimes, box: Box, seed: int, number: int) -> Traced:
    """The rows of ``box`` under the order at ``place``."""
    budget = max(1, LEAST // len(runtimes.columns))
    return traced([runtimes.columns[number]], Trace(box, expand=False), budget, seed + number)


def _conditionals(
    runtime: Runtime[Any], symbols: IntArray, masses: FloatArray, axes: Sequence[Axis]
) -> list[tuple[int, FloatArray]]:
    """For each axis its column, and the mass of each of its symbols among rows that have read what they will."""
    reading = RowReader.of(runtime, len(symbols))
    for position in present(runtime, symbols):
        reading.read(position, symbols[:, position])
    marginals = []
    for axis in sorted(axes, key=lambda axis: runtime.order.index(axis.positions[0])):
        shares = softmax(runtime.logits(reading.state, axis.positions[0]))
        marginals.append((axis.column, masses @ shares))
    return marginals
