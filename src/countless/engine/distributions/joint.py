"""Joint distributions: the mass of a region for every combination of some columns' values, with one walk a box.

The columns become filters that allow every value but are read nevertheless. A column after all filters in the order is
expanded at the end. A column before them is carried along: particles with different values are thinned separately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countless.arrays import FloatArray, IntArray
from countless.engine.answer import Trace, Traced
from countless.engine.columns.trace import traced
from countless.engine.fusion.text_in_context import chances, handful
from countless.engine.runtimes import Runtimes
from countless.engine.text.methods import PARTICLES
from countless.region import Box, Constraint, DigitSet, Filter, Region, ValueSet

LEAST, MOST = 384, 4096  # limits of the number of particles
PER_VALUE = 4  # particles for each combination of values
LEAST_ROWS, MOST_FACTOR = 0.5, 4.0  # rows added to both sides of a ratio of counts, and the largest factor
MOST_LISTED = 1 << 20  # combinations; for more, masses are sorted instead of a dense array
LEAST_CONTEXTS, MOST_CONTEXTS = 64, 256  # rows in which texts are read


@dataclass(frozen=True)
class Axis:
    """A column of a joint distribution: its index, its positions with their radices, and its number of codes."""

    column: int
    positions: tuple[int, ...]
    radices: tuple[int, ...]
    size: int

    def listed(self, weights: FloatArray | None) -> Constraint:
        """A constraint that reads every position and gives each code its weight."""
        allowed = np.ones(self.size) if weights is None else weights
        if len(self.radices) == 1:
            return ValueSet(allowed, listed=True)
        return DigitSet(allowed, self.radices, listed=True)

    def codes(self, symbols: IntArray) -> IntArray:
        """The code of each row of symbols."""
        codes: IntArray = np.ravel_multi_index(tuple(symbols[:, self.positions].T), self.radices)
        return codes


@dataclass(frozen=True, eq=False)
class JointDistribution:
    """Combinations of codes (combinations, axes), ascending, and their masses.

    ``exact`` says that nothing was sampled, ``counted`` that the masses are counts of the table's rows.
    """

    codes: IntArray
    masses: FloatArray
    exact: bool
    counted: bool = False


def joint_masses(runtimes: Runtimes, region: Region, axes: Sequence[Axis], groups: int, seed: int) -> JointDistribution:
    """The mass of every combination of the axes' codes in ``region``.

    Particles that differ in one of the first ``groups`` axes are thinned separately.
    """
    return summed([masses_of_box(runtimes, box, axes, groups, seed) for box in region.boxes], axes)


BoxMasses = tuple[IntArray, FloatArray, bool, bool]  # numbers of combinations, their masses, is_exact, is_counted


def masses_of_box(runtimes: Runtimes, box: Box, axes: Sequence[Axis], groups: int, seed: int) -> BoxMasses:
    """The masses of the combinations in one box."""
    key = (box, tuple(axis.column for axis in axes), groups, seed)
    return runtimes.once(key, lambda: counted(runtimes, box, axes) or _walked(runtimes, box, axes, groups, seed))


def summed(all_masses: Sequence[BoxMasses], axes: Sequence[Axis]) -> JointDistribution:
    """The sum over all boxes, which are disjoint."""
    box_numbers = np.concatenate([np.empty(0, dtype=np.int64), *(box_masses[0] for box_masses in all_masses)])
    masses = np.concatenate([np.empty(0), *(box_masses[1] for box_masses in all_masses)])
    if math.prod(axis.size for axis in axes) <= MOST_LISTED:
        dense: FloatArray = np.bincount(box_numbers, masses).astype(np.float64)
        combinations = np.flatnonzero(dense)
        sums = dense[combinations]
    else:
        combinations, indices = np.unique(box_numbers, return_inverse=True)
        sums = np.bincount(indices, masses, minlength=len(combinations)).astype(np.float64)
        combinations, sums = combinations[sums != 0], sums[sums != 0]
    codes = np.stack(np.unravel_index(combinations, [axis.size for axis in axes]), axis=1)
    return JointDistribution(
        codes, sums, all(box_masses[2] for box_masses in all_masses), all(box_masses[3] for box_masses in all_masses)
    )


def _walked(runtimes: Runtimes, box: Box, axes: Sequence[Axis], groups: int, seed: int) -> BoxMasses:
    listed = with_axes(box, axes)
    labels = [position for axis in axes[:groups] for position in axis.positions]
    values = math.prod(axis.size for axis in axes[:groups])
    particles = min(MOST, max(LEAST, PER_VALUE * values, *(axis.size for axis in axes)))
    if math.prod(int(np.count_nonzero(box_filter.constraint.weights)) for box_filter in listed.filters) > particles:
        listed = runtimes.hinted(listed)  # otherwise nothing will be thinned, and hints are not needed
    # Before a value is read, particles stand for the filters alone, and a few stand for them as well as many.
    few = LEAST if labels else None
    trace = Trace(listed, labels, expand=groups < len(axes) or bool(box.texts), unlabelled=few)
    rows = traced(runtimes.columns, trace, particles, seed)
    if box.texts and runtimes.texts:  # without a network, columns and text count as independent
        rows = _with_texts(runtimes, box, rows, axes[:groups], seed)
    masses = rows.masses
    if runtimes.counts is not None and 0 < groups < len(axes):
        masses = _corrected(runtimes, rows, axes, groups, seed)
    return combination_numbers(rows, axes), masses, rows.exact, False


def _corrected(runtimes: Runtimes, rows: Traced, axes: Sequence[Axis], groups: int, seed: int) -> FloatArray:
    """The masses, corrected within each combination of the groups by counts of pairs of columns.

    The counts give the true distribution of the last axis for each value of a group axis, over the whole table. The
    model's error there is about its error in this region, so the masses are multiplied by the same factors.
    """
    last_codes = axes[-1].codes(rows.symbols)
    factors = [
        np.log(factor_table[axis.codes(rows.symbols), last_codes])
        for axis in axes[:groups]
        if (factor_table := _factors(runtimes, axis, axes[-1], seed)) is not None
    ]
    if not factors:
        return rows.masses
    masses = rows.masses * np.exp(np.mean(factors, axis=0))
    labels = np.unique(combination_numbers(rows, axes[:groups]), return_inverse=True)[1]
    old_sums, new_sums = np.bincount(labels, rows.masses), np.bincount(labels, masses)
    scale = np.divide(old_sums, new_sums, out=np.zeros(len(old_sums)), where=new_sums > 0)
    corrected: FloatArray = masses * scale[labels]
    return corrected


def _factors(runtimes: Runtimes, group: Axis, measured: Axis, seed: int) -> FloatArray | None:
    """The ratio of counted rows to the model's rows for each pair of codes; None if the pair was not counted."""
    counts = runtimes.counts
    table = None if counts is None else counts.pairs.code_by_code(group.column, measured.column)
    if counts is None or table is None:
        return None

    def compute() -> FloatArray:
        joint = joint_masses(runtimes.without_summaries(), Region((Box(),)), [group, measured], 1, seed)
        model = np.zeros(table.shape)
        model[joint.codes[:, 0], joint.codes[:, 1]] = joint.masses * counts.pairs.rows
        factors: FloatArray = np.clip((table + LEAST_ROWS) / (model + LEAST_ROWS), 1 / MOST_FACTOR, MOST_FACTOR)
        return factors

    return counts.cached((group.column, measured.column), compute)


def _with_texts(runtimes: Runtimes, box: Box, rows: Traced, groups: Sequence[Axis], seed: int) -> Traced:
    """A sample of the rows for each value of the groups, their masses multiplied by the chances of the box's texts."""
    labels = combination_numbers(rows, groups) if groups else None
    values = math.prod(axis.size for axis in groups)
    rows = handful(rows, min(MOST_CONTEXTS, max(LEAST_CONTEXTS, PER_VALUE * values)), seed, labels)
    if not rows.masses.sum() > 0:
        return rows
    text_chances = chances(runtimes, box.texts, rows.symbols, rows.masses, PARTICLES, None, seed)
    return replace(rows, masses=rows.masses * text_chances.values, exact=rows.exact and text_chances.exact)


def combination_numbers(rows: Traced, axes: Sequence[Axis]) -> IntArray:
    """The number of each row's combination of the axes' codes."""
    codes = tuple(axis.codes(rows.symbols) for axis in axes)
    return np.ravel_multi_index(codes, [axis.size for axis in axes])


def with_axes(box: Box, axes: Sequence[Axis]) -> Box:
    """The box with a filter on each axis that reads every position. Its own filters on the axes stay in force."""
    own_filters = {box_filter.positions: box_filter for box_filter in box.filters}
    listed = []
    for axis in axes:
        box_filter = own_filters.pop(axis.positions, None)
        weights = None if box_filter is None else box_filter.constraint.weights.astype(np.float64)
        listed.append(Filter(axis.positions, axis.listed(weights)))
    return Box((*own_filters.values(), *listed), box.texts)


def counted(runtimes: Runtimes, box: Box, axes: Sequence[Axis]) -> BoxMasses | None:
    """The masses in a box from exact counts, if one or two columns with a count for each value are involved."""
    if runtimes.counts is None or box.texts:
        return None
    listed = with_axes(box, axes)
    table = runtimes.counts.table(listed.filters)
    if table is None:
        return None
    other_axes = tuple(range(len(listed.filters) - len(axes)))
    shares = table.sum(axis=other_axes) if other_axes else table
    flat = shares.ravel()
    occurring = np.flatnonzero(flat)
    is_count = all(np.isin(box_filter.constraint.weights, (0, 1)).all() for box_filter in listed.filters)
    return occurring, flat[occurring], True, is_count
