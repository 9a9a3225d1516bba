"""What counts say of boxes, against the rows of small tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless.arrays import IntArray
from countless.data.summaries import counting
from countless.data.summaries.counting import count_pairs
from countless.engine.answer import Answer
from countless.engine.columns.particles import particles
from countless.engine.density import densities
from countless.engine.fusion.pair_bounds import TRUSTED, BoxCounts, Counts
from countless.engine.fusion.pair_filters import CompiledCrossed, Crossed, Sums
from countless.engine.runtimes import Runtimes
from countless.region import Box, Filter, Region, ValueSet
from tests.data.summaries.test_pair_counts import encoded
from tests.mocks import JointRuntime, PrefixRuntime, value_set

SIZES = (2, 9, 5, 7)


@st.composite
def cases(draw: st.DrawFn) -> tuple[IntArray, Box, Counts]:
    """Rows of four columns, a box that keeps some codes of some of them, and their counts in buckets of some width."""
    rows = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=60))
    chosen = draw(st.lists(st.sampled_from(range(len(SIZES))), min_size=1, max_size=4, unique=True))
    filters = []
    for column in sorted(chosen):
        codes = draw(st.lists(st.integers(0, SIZES[column] - 1), max_size=SIZES[column]))
        filters.append(value_set(column, codes, SIZES[column]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BUCKETS", (draw(st.sampled_from([2, 3, 128])),))
        pairs = count_pairs(encoded(rows, SIZES), draw(st.sampled_from([50, 10**6])))
    return np.array(rows), Box(tuple(filters)), Counts(pairs, [(position,) for position in range(len(SIZES))])


def kept(rows: IntArray, filters: Sequence[Filter]) -> int:
    """The rows in all of the filters."""
    inside = [item.constraint.weights[rows[:, item.positions[0]]] > 0 for item in filters]
    return int(np.all(inside, axis=0).sum())


@given(cases())
def test_no_box_leaves_its_bounds(case: tuple[IntArray, Box, Counts]) -> None:
    rows, box, counts = case
    truth = kept(rows, box.filters) / len(rows)
    box_counts = counts.of_box(box)
    assert box_counts.least - 1e-12 <= truth <= box_counts.most + 1e-12
    if box_counts.answer is not None:
        assert box_counts.least - 1e-12 <= box_counts.answer.density <= box_counts.most + 1e-12
        if box_counts.answer.counted:
            assert box_counts.answer.density == pytest.approx(truth)
    for part in box_counts.parts:
        assert part.density / 1.25 <= kept(rows, part.box.filters) / len(rows) <= part.density * 1.25


@given(cases())
def test_each_two_filters(case: tuple[IntArray, Box, Counts]) -> None:
    rows, box, counts = case
    filters = [(item.positions[0], item) for item in box.filters]
    crossed = counts.crossed(box.filters)
    assert isinstance(crossed, CompiledCrossed)
    compiled, twin = crossed.arrays, Crossed.by_numpy(counts.pairs, Sums(counts.pairs), filters)
    assert np.array_equal(compiled.most, twin.most)
    assert np.array_equal(compiled.least, twin.least)
    assert crossed.bounds() == compiled.bounds() == twin.bounds()
    for index, later in product(range(len(filters)), (range(len(filters)), range(1), range(2, len(filters)))):
        others = [other for other in later if other != index]
        ahead, expected = crossed.ahead(index, others), twin.ahead(index, others)
        if ahead is None or expected is None:
            assert ahead is expected
        else:
            assert np.array_equal(ahead, expected)
    whole = len(counts.pairs.tables) == 6 and all(map(np.array_equal, counts.pairs.starts, map(np.arange, SIZES)))
    nothing = compiled.most.min() == 0
    for one, first in enumerate(box.filters):
        for two, second in enumerate(box.filters):
            truth = kept(rows, [first, second])
            assert compiled.least[one, two] <= truth <= compiled.most[one, two]
            if whole and not nothing:  # a bucket for each code
                assert compiled.least[one, two] == truth == compiled.most[one, two]


@given(cases(), st.integers(0, 3))
def test_any_model_stays_within(case: tuple[IntArray, Box, Counts], seed: int) -> None:
    _, box, counts = case
    models = Runtimes((PrefixRuntime(SIZES, seed),), counts=counts)
    (answers,) = densities(models, [Region((box,))], "particles", None, 0)
    box_counts = counts.of_box(box)
    assert box_counts.least <= answers.value <= box_counts.most
    assert (answers.least, answers.most) == (box_counts.least, box_counts.most)
    for method in ("exact", "skipping"):  # which are the model's alone
        (own,) = densities(models, [Region((box,))], method, 20, 0)
        (plain,) = densities(models.without_summaries(), [Region((box,))], method, 20, 0)
        assert own == plain


def test_a_perfect_model_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, size, 4000) for size in (3, 4, 5)], axis=1)
    joint = np.zeros((3, 4, 5))
    np.add.at(joint, tuple(rows.T), 1)
    counts = Counts(count_pairs(encoded(rows.tolist(), (3, 4, 5))), [(0,), (1,), (2,)])
    box = Box((value_set(0, [1], 3), value_set(1, [0, 2], 4), value_set(2, [3], 5)))
    (answers,) = densities(Runtimes((JointRuntime(joint),), counts=counts), [Region((box,))], "particles", None, 0)
    assert answers.value == pytest.approx(kept(rows, box.filters) / 4000)
    assert answers.answers[0].factor == pytest.approx(1)


def test_a_model_that_knows_no_pairs_is_corrected() -> None:
    """Two columns that are always equal, and a third on its own: what the columns alone tell is far off."""
    rng = np.random.default_rng(2)
    one = rng.integers(0, 4, 8000)
    rows = np.stack([one, one, rng.integers(0, 4, 8000)], axis=1)
    counts = Counts(count_pairs(encoded(rows.tolist(), (4, 4, 4))), [(0,), (1,), (2,)])
    box = Box(tuple(value_set(position, [2], 4) for position in range(3)))
    model = Runtimes((JointRuntime(np.ones((4, 4, 4))),), counts=counts)
    (answers,) = densities(model, [Region((box,))], "particles", None, 0)
    assert answers.value == pytest.approx(kept(rows, box.filters) / 8000 / TRUSTED, rel=0.1)
    assert answers.answers[0].corrected == (0, 1)
    assert answers.answers[0].factor == pytest.approx(4 / TRUSTED, rel=0.1)


def test_the_worst_part_decides_and_the_bound_holds() -> None:
    model = [((0,), 0.1, 0.1, 1), ((0, 1), 0.2, 0.1, 1), ((1, 2), 0.01, 0.1, 1)]
    box_counts = BoxCounts(Box(), 1000, 0.001, 0.03, (0, 1, 2), (0, 1))
    improved = box_counts.improve(Answer(0.01, True, 1, (), 1), model)
    assert improved.density == pytest.approx(0.01 * 2 / TRUSTED)
    assert (improved.corrected, improved.clipped) == ((0, 1), ())
    improved = box_counts.improve(Answer(0.6, True, 1, (), 1), model)
    assert (improved.density, improved.clipped, improved.forward_rows) == (0.03, (0, 1), 4)
    assert box_counts.improve(Answer(0.0, True, 1, (), 1), model).density == 0.001


def test_only_answers_of_few_rows_are_checked() -> None:
    rng = np.random.default_rng(4)
    one = rng.integers(0, 4, 40_000)
    rows = np.stack([one, one, rng.integers(0, 4, 40_000)], axis=1)
    counts = Counts(count_pairs(encoded(rows.tolist(), (4, 4, 4))), [(0,), (1,), (2,)])
    box = Box(tuple(value_set(position, [2], 4) for position in range(3)))
    walks: list[int] = []

    def ask(share: float, boxes: Sequence[Box]) -> list[Answer]:
        walks.append(len(boxes))
        return [Answer(share, True, 1, (), 1)] * len(boxes)

    for share, calls in ((0.05, [1]), (0.02, [1, 3])):
        counts.answers([counts.of_box(box)], partial(ask, share))
        assert walks == calls
        walks.clear()


def test_a_model_that_is_about_right_or_finds_too_much_is_left_alone() -> None:
    box_counts = BoxCounts(Box(), 1000, 0.0, 1.0, (0, 1), (0,))
    improved = box_counts.improve(Answer(0.02, True, 1, (), 1), [((0,), 0.12, 0.1, 1), ((1,), 0.01, 0.1, 1)])
    assert (improved.density, improved.corrected, improved.factor) == (0.02, (), 1.0)


@given(cases())
def test_hints_tell_how_often_later_filters_hold(case: tuple[IntArray, Box, Counts]) -> None:
    rows, box, counts = case
    crossed = counts.crossed(box.filters)
    whole = len(counts.pairs.tables) == 6 and all(map(np.array_equal, counts.pairs.starts, map(np.arange, SIZES)))
    for index, item in enumerate(box.filters):
        assert crossed.ahead(index, []) is None
        for other, later in enumerate(box.filters):
            hints = crossed.ahead(index, [other])
            if hints is None or other == index or not whole:
                continue
            (position,), keeps = item.positions, item.constraint.weights
            for code in np.flatnonzero(keeps):
                own = rows[rows[:, position] == code]
                share = kept(own, [later]) / len(own) if len(own) else 0.0
                assert hints[code] == pytest.approx(np.sqrt(share))


def test_hints_find_the_needle() -> None:
    """A common value and a hundred rare ones, of which a later filter keeps one: few particles must find it."""
    codes = np.concatenate([np.zeros(4000, dtype=np.int64), np.arange(1, 101).repeat(10)])
    joint = np.zeros((101, 101))
    np.add.at(joint, (codes, codes), 1)
    rows = np.stack([codes, codes], axis=1)
    counts = Counts(count_pairs(encoded(rows.tolist(), (101, 101))), [(0,), (1,)])
    box = Box((value_set(0, list(range(100)), 101), value_set(1, [78], 101)))
    runtime = JointRuntime(joint)
    numbers = np.full(2, 0.5)
    plain = particles(runtime, box, 8, numbers)
    hinted = particles(runtime, counts.of_box(box).box, 8, numbers, hinted=True)
    assert not 0.5 < plain.density / (10 / len(rows)) < 2
    assert hinted.density == pytest.approx(10 / len(rows))


def test_a_part_of_a_cell_is_no_count() -> None:
    rows = [(0, 0, 0, 0)] * 3 + [(1, 1, 1, 1)]
    counts = Counts(count_pairs(encoded(rows, SIZES)), [(position,) for position in range(4)])
    half = Filter((0,), ValueSet(np.array([1.0, 0.5])))
    box_counts = counts.of_box(Box((half,)))
    assert box_counts.answer is not None
    assert (box_counts.answer.density, box_counts.answer.counted) == (0.875, False)
    assert (box_counts.least, box_counts.most) == (0.75, 1.0)
    both = counts.of_box(Box((half, value_set(1, [1], 9))))
    assert (both.least, both.most, both.answer) == (0.0, 0.25, None)
