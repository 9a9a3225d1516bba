"""Bounds and estimates from sparse counts of pairs, against the rows of small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.arrays import IntArray
from countless.data.summaries import counting
from countless.data.summaries.counting import count_pairs
from countless.data.summaries.sparse_pairs import SparseTable
from countless.engine.density import counts_answer
from countless.engine.fusion import wide_columns
from countless.engine.fusion.pair_bounds import Counts
from countless.engine.fusion.wide_columns import Star
from countless.engine.runtimes import Runtimes
from countless.region import Box, Filter, Region, ValueSet
from tests.data.summaries.test_pair_counts import encoded
from tests.engine.fusion.test_pair_bounds import kept
from tests.mocks import JointRuntime, value_set

SIZES = (12, 4, 3)


def counts_of(rows: IntArray, sizes: Sequence[int], others: Sequence[int] = (1, 2)) -> Counts:
    """Their counts, by few buckets; those of the first column and of the ``others`` code by code too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BUCKETS", (2,))
        pairs = count_pairs(encoded(rows.tolist(), tuple(sizes)))
    ones = np.ones(len(rows), dtype=np.int64)
    sparse = [SparseTable.of_cells(0, other, sizes[0], rows[:, 0], rows[:, other], ones) for other in others]
    return Counts(replace(pairs, sparse=tuple(sparse)), [(position,) for position in range(len(sizes))])


@given(
    st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=3, max_size=80),
    st.tuples(*(st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.4]), min_size=size, max_size=size) for size in SIZES)),
    st.booleans(),
    st.booleans(),
)
def test_stars_hold_the_truth(
    given_rows: list[tuple[int, ...]], weights: tuple[list[float], ...], whole: bool, summed: bool
) -> None:
    """Of filters on values, or on parts of them, whichever rows of a part are kept."""
    rows = np.array(given_rows)
    counts = counts_of(rows, SIZES)
    filters = []
    for position, own in enumerate(weights):
        chosen = np.array(own)
        filters.append(Filter((position,), ValueSet(chosen > 0 if whole else chosen)))
    most = kept(rows, filters)
    sure = np.all([item.constraint.weights[rows[:, item.positions[0]]] == 1 for item in filters], axis=0).sum()
    known = counts.of_box(Box(tuple(filters)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_columns, "FEW_CODES", 0 if summed else 64)
        twins = counts._wide.stars([(item.positions[0], item) for item in filters])
    assert_like(known.stars, twins)
    for star in known.stars:
        some = [filters[index] for index in star.filters]
        own_most = kept(rows, some)
        own_sure = np.all([item.constraint.weights[rows[:, item.positions[0]]] == 1 for item in some], axis=0).sum()
        assert star.least <= own_sure <= own_most <= star.most
        assert star.least - 1e-9 <= star.rows <= star.most + 1e-9
        if whole and len(some) == 2:
            assert star.least == own_most == star.most
    assert known.least * len(rows) <= sure + 1e-9
    assert most <= known.most * len(rows) + 1e-9


def assert_like(stars: Sequence[Star], twins: Sequence[Star]) -> None:
    """That compiled code has found the stars of NumPy, but for the order in which parts of rows are added up."""
    assert [(star.filters, star.least, star.most) for star in stars] == [
        (star.filters, star.least, star.most) for star in twins
    ]
    assert [star.rows for star in stars] == pytest.approx([star.rows for star in twins])


@pytest.mark.parametrize("chosen", [70, 300])
def test_filters_on_many_values_are_summed_once(chosen: int) -> None:
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(0, 300, 4000), rng.integers(0, 4, 4000), rng.integers(0, 3, 4000)], axis=1)
    counts = counts_of(rows, (300, 4, 3))
    for _ in range(40):  # more filters than sums are kept of
        wide = ValueSet(np.isin(np.arange(300), rng.choice(300, chosen, replace=False)))
        some = [ValueSet(rng.random(4) < 0.5), ValueSet(rng.choice([0.0, 0.5, 1.0], 3))]
        filters = [Filter((place,), each) for place, each in enumerate((wide, *some))]
        twins = counts._wide.stars([(item.positions[0], item) for item in filters])
        for _ in range(2):
            assert_like(counts.of_box(Box(tuple(filters))).stars, twins)


def decided_rows() -> IntArray:
    """A wide column that decides the second one; the third has to do with neither, the fourth with nothing."""
    rng = np.random.default_rng(3)
    wide = rng.integers(0, 60, 6000)
    return np.stack([wide, wide % 5, rng.integers(0, 6, 6000), rng.integers(0, 10, 6000)], axis=1)


def test_what_a_value_decides_is_counted() -> None:
    rows = decided_rows()
    counts = counts_of(rows, (60, 5, 6, 10))
    box = Box((value_set(0, [32], 60), value_set(1, [2], 5), value_set(2, [1, 4], 6)))
    known = counts.of_box(box)
    assert known.answer is not None
    assert known.answer.counted
    assert known.answer.density * 6000 == pytest.approx(kept(rows, box.filters))
    runtimes = Runtimes((JointRuntime(np.ones((60, 5, 6, 10))),), counts=counts)
    assert counts_answer(runtimes, Region((box,)))
    none = Box((value_set(0, [32], 60), value_set(1, [3], 5), value_set(2, [1, 4], 6)))
    assert counts.of_box(none).most == 0


def test_what_is_not_decided_is_estimated_between_bounds() -> None:
    rows = decided_rows()
    counts = counts_of(rows, (60, 5, 6, 10), (2, 3))
    box = Box((value_set(0, [7, 8], 60), value_set(2, [0, 1, 2], 6), value_set(3, [0, 1, 2, 3, 4], 10)))
    known = counts.of_box(box)
    assert known.answer is not None
    assert not known.answer.counted
    truth = kept(rows, box.filters)
    assert known.least * 6000 <= truth <= known.most * 6000
    assert known.answer.density * 6000 == pytest.approx(truth, rel=0.3)


def test_the_rarest_part_is_found() -> None:
    rows = decided_rows()
    counts = counts_of(rows, (60, 5, 6, 10))
    box = Box((value_set(0, [32], 60), value_set(1, [2], 5), value_set(2, [1], 6), value_set(3, [1, 2], 10)))
    part = counts.of_box(box).rarest_part(whole=False)
    assert part is not None
    assert part.rows == kept(rows, part.box.filters)
    assert [item.positions for item in part.box.filters] == [(0,), (1,), (2,)]
