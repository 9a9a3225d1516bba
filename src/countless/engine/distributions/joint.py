"""Joint distributions: the mass of a region for every combination of some columns' values, with one walk a box.

The columns become filters that allow everything but are read all the same. A column after all evidence in the order is
expanded at the end; one before it needs its values carried along, and particles of different values are thinned apart.
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

LEAST, MOST = 384, 4096  # particles; between them
PER_VALUE = 4  # of each combination of values
LEAST_ROWS, MOST_FACTOR = 0.5, 4.0  # rows in a ratio of counts, and how much it may change
MOST_LISTED = 1 << 20  # combinations of which each has a place; of more, those that occur are sorted
LEAST_CONTEXTS, MOST_CONTEXTS = 64, 256  # rows in which texts are read


@dataclass(frozen=True)
class Axis:
    """A column to spread mass over: its place among the columns, its positions, the radix of each, how many codes."""

    column: int
    positions: tuple[int, ...]
    radices: tuple[int, ...]
    size: int

    def listed(self, weights: FloatArray | None) -> Constraint:
        """A constraint that reads every position, and allows each code by its weight."""
        allowed = np.ones(self.size) if weights is None else weights
        if len(self.radices) == 1:
            return ValueSet(allowed, listed=True)
        return DigitSet(allowed, self.radices, listed=True)

    def codes(self, symbols: IntArray) -> IntArray:
        """The codes of rows of symbols."""
        codes: IntArray = np.ravel_multi_index(tuple(symbols[:, self.positions].T), self.radices)
        return codes


@dataclass(frozen=True, eq=False)
class JointDistribution:
    """Combinations of codes (combinations, axes), rising, and the mass of each; ``counted`` if these are the table's.

    ``exact`` says that nothing was sampled.
    """

    codes: IntArray
    masses: FloatArray
    exact: bool
    counted: bool = False


def joint_masses(runtimes: Runtimes, region: Region, axes: Sequence[Axis], groups: int, seed: int) -> JointDistribution:
    """The mass of every combination of the axes' codes in ``region``.

    The values of the first ``groups`` axes are carried along apart from each other; those of the others within each.
    """
    return summed([part(runtimes, box, axes, groups, seed) for box in region.boxes], axes)


Part = tuple[IntArray, FloatArray, bool, bool]  # combinations by number, their masses, whether exact, whether counted


def part(runtimes: Runtimes, box: Box, axes: Sequence[Axis], groups: int, seed: int) -> Part:
    """What one box contributes."""
    key = (box, tuple(axis.column for axis in axes), groups, seed)
    return runtimes.once(key, lambda: counted(runtimes, box, axes) or _walked(runtimes, box, axes, groups, seed))


def summed(parts: Sequence[Part], axes: Sequence[Axis]) -> JointDistribution:
    """All boxes together, which are disjoint."""
    combination_numbers = np.concatenate([np.empty(0, dtype=np.int64), *(each[0] for each in parts)])
    masses = np.concatenate([np.empty(0), *(each[1] for each in parts)])
    if math.prod(axis.size for axis in axes) <= MOST_LISTED:
        every: FloatArray = np.bincount(combination_numbers, masses).astype(np.float64)
        combinations = np.flatnonzero(every)
        sums = every[combinations]
    else:
        combinations, numbers = np.unique(combination_numbers, return_inverse=True)
        sums = np.bincount(numbers, masses, minlength=len(combinations)).astype(np.float64)
        combinations, sums = combinations[sums != 0], sums[sums != 0]
    codes = np.stack(np.unravel_index(combinations, [axis.size for axis in axes]), axis=1)
    return JointDistribution(codes, sums, all(each[2] for each in parts), all(each[3] for each in parts))


def _walked(runtimes: Runtimes, box: Box, axes: Sequence[Axis], groups: int, seed: int) -> Part:
    listed = with_axes(box, axes)
    labels = [position for axis in axes[:groups] for position in axis.positions]
    values = math.prod(axis.size for axis in axes[:groups])
    particles = min(MOST, max(LEAST, PER_VALUE * values, *(axis.size for axis in axes)))
    if math.prod(int(np.count_nonzero(item.constraint.weights)) for item in listed.filters) > particles:
        listed = runtimes.hinted(listed)  # else nothing will be thinned
    # Before a value is read, particles stand for the filters alone, and a few stand for them as well as many.
    few = LEAST if labels else None
    trace = Trace(listed, labels, expand=groups < len(axes) or bool(box.texts), unlabelled=few)
    rows = traced(runtimes.columns, trace, particles, seed)
    if box.texts and runtimes.texts:  # without a network, as if columns had nothing to do with the text
        rows = _with_texts(runtimes, box, rows, axes[:groups], seed)
    masses = rows.masses
    if runtimes.counts is not None and 0 < groups < len(axes):
        masses = _corrected(runtimes, rows, axes, groups, seed)
    return numbered(rows, axes), masses, rows.exact, False


def _corrected(runtimes: Runtimes, rows: Traced, axes: Sequence[Axis], groups: int, seed: int) -> FloatArray:
    """The masses, shifted within each combination of the groups as counts of pairs say that the model errs.

    In the whole table it is known how rows are spread over the values of the last axis, within those of each group that
    it makes a counted pair with. By how much the model is off there, so much it will be here, about.
    """
    own = axes[-1].codes(rows.symbols)
    factors = [
        np.log(factor_table[axis.codes(rows.symbols), own])
        for axis in axes[:groups]
        if (factor_table := _factors(runtimes, axis, axes[-1], seed)) is not None
    ]
    if not factors:
        return rows.masses
    masses = rows.masses * np.exp(np.mean(factors, axis=0))
    labels = np.unique(numbered(rows, axes[:groups]), return_inverse=True)[1]
    before, after = np.bincount(labels, rows.masses), np.bincount(labels, masses)
    scale = np.divide(before, after, out=np.zeros(len(before)), where=after > 0)
    corrected: FloatArray = masses * scale[labels]
    return corrected


def _factors(runtimes: Runtimes, group: Axis, measured: Axis, seed: int) -> FloatArray | None:
    """For each two codes, how many times as many rows have them as the model says; None if they were not counted."""
    counts = runtimes.counts
    table = None if counts is None else counts.pairs.code_by_code(group.column, measured.column)
    if counts is None or table is None:
        return None

    def made() -> FloatArray:
        joint = joint_masses(runtimes.without_summaries(), Region((Box(),)), [group, measured], 1, seed)
        model = np.zeros(table.shape)
        model[joint.codes[:, 0], joint.codes[:, 1]] = joint.masses * counts.pairs.rows
        factors: FloatArray = np.clip((table + LEAST_ROWS) / (model + LEAST_ROWS), 1 / MOST_FACTOR, MOST_FACTOR)
        return factors

    return counts.cached((group.column, measured.column), made)


def _with_texts(runtimes: Runtimes, box: Box, rows: Traced, groups: Sequence[Axis], seed: int) -> Traced:
    """A handful of the rows for each value of the groups, with what the box's texts leave of their masses."""
    labels = numbered(rows, groups) if groups else None
    values = math.prod(axis.size for axis in groups)
    rows = handful(rows, min(MOST_CONTEXTS, max(LEAST_CONTEXTS, PER_VALUE * values)), seed, labels)
    if not rows.masses.sum() > 0:
        return rows
    text_chances = chances(runtimes, box.texts, rows.symbols, rows.masses, PARTICLES, None, seed)
    return replace(rows, masses=rows.masses * text_chances.values, exact=rows.exact and text_chances.exact)


def numbered(rows: Traced, axes: Sequence[Axis]) -> IntArray:
    """For each row the number of its combination of the axes' codes."""
    codes = tuple(axis.codes(rows.symbols) for axis in axes)
    return np.ravel_multi_index(codes, [axis.size for axis in axes])


def with_axes(box: Box, axes: Sequence[Axis]) -> Box:
    """The box with the axes' columns read in any case; its own filters on them stay in force."""
    own_filters = {item.positions: item for item in box.filters}
    listed = []
    for axis in axes:
        item = own_filters.pop(axis.positions, None)
        weights = None if item is None else item.constraint.weights.astype(np.float64)
        listed.append(Filter(axis.positions, axis.listed(weights)))
    return Box((*own_filters.values(), *listed), box.texts)


def counted(runtimes: Runtimes, box: Box, axes: Sequence[Axis]) -> Part | None:
    """A box's part from counts, if they tell it: of one column or two, each value by itself."""
    if runtimes.counts is None or box.texts:
        return None
    listed = with_axes(box, axes)
    table = runtimes.counts.table(listed.filters)
    if table is None:
        return None
    others = tuple(range(len(listed.filters) - len(axes)))
    shares = table.sum(axis=others) if others else table
    flat = shares.ravel()
    occurring = np.flatnonzero(flat)
    whole = all(np.isin(item.constraint.weights, (0, 1)).all() for item in listed.filters)
    return occurring, flat[occurring], True, whole
