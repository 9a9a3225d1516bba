"""A question that is answered in one compiled call, against its stages one by one, compiled and in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from countless.data.summaries import counting
from countless.data.summaries.counting import count_pairs
from countless.data.summaries.sparse_pairs import SparseTable
from countless.engine.answer import Answer
from countless.engine.columns import kernel
from countless.engine.columns.particle_budget import adaptive, effort, fixed
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.density import densities
from countless.engine.fusion.pair_bounds import BoxCounts, Counts
from countless.engine.runtimes import Runtimes
from countless.region import Box, Region
from countless.spec import ModelSpec
from tests.data.summaries.test_pair_counts import encoded
from tests.engine.columns.test_kernel import DIGITS, SCATTERED, WIDE, random_box
from tests.engine.columns.test_resmade import network

SPECS = (DIGITS, SCATTERED, WIDE)
ROWS = 3_000


class Case:
    """A network, and the counts of random rows that it has not seen; columns of many codes are in buckets."""

    def __init__(self, spec: ModelSpec) -> None:
        starts = np.cumsum([0, *spec.groups])
        spans = [tuple(range(start, start + count)) for start, count in zip(starts, spec.groups, strict=False)]
        sizes = tuple(int(np.prod([spec.sizes[position] for position in own])) for own in spans)
        rng = np.random.default_rng(3)
        rows = np.stack([rng.integers(0, size, ROWS) * rng.integers(0, 2, ROWS) for size in sizes], axis=1)
        self.spec = spec
        self.runtime = ResMadeRuntime(spec, network(spec).arrays())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counting, "BUCKETS", (8,))
            pairs = count_pairs(encoded(rows.tolist(), sizes))
        wide, ones = int(np.argmax(sizes)), np.ones(ROWS, dtype=np.int64)
        others = [column for column in range(len(sizes)) if column != wide][:1]
        sparse = [
            SparseTable.of_cells(wide, other, sizes[wide], rows[:, wide], rows[:, other], ones) for other in others
        ]
        self.counts = Counts(replace(pairs, sparse=tuple(sparse)), spans)

    def boxes(self, seed: int, count: int = 40) -> list[Box]:
        rng = np.random.default_rng(seed)
        boxes_drawn = [random_box(self.spec, rng, wide=bool(index % 2)) for index in range(count)]
        return [box for box in boxes_drawn if box.filters]

    def known(self, seed: int) -> list[BoxCounts]:
        return [self.counts.of_box(box) for box in self.boxes(seed)]

    def answers(self, known: list[BoxCounts], budget: int | None, seed: int) -> list[Answer]:
        """In one call each."""
        assert self.runtime.kernel is not None
        walk = effort(budget, seed, len(self.spec.sizes))
        return [self.counts.answer(part, self.runtime.kernel, walk) for part in known]


@pytest.fixture(scope="module", params=SPECS, ids=str)
def case(request: Any) -> Case:
    return Case(request.param)


@pytest.mark.parametrize("budget", [None, 3, 30])
def test_the_stages_one_by_one_have_the_very_same_answers(case: Case, budget: int | None) -> None:
    def ask(boxes: Any) -> list[Answer]:
        if budget is None:
            return adaptive(case.runtime, boxes, 7)
        return fixed(case.runtime, boxes, budget, 7, hinted=True)

    known = case.known(1)
    assert any(part.star is not None and part.answer is None for part in known)
    expected = [case.counts.answers([part], ask)[0] for part in known]
    assert case.answers(known, budget, 7) == expected
    assert any(answer.corrected for answer in expected)
    assert budget != 3 or any(not answer.exact for answer in expected)


@pytest.mark.parametrize("budget", [None, 6])
def test_numpy_comes_to_the_same_answers(case: Case, budget: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    known = case.known(2)
    answers = case.answers(known, budget, 5)
    monkeypatch.setenv(kernel.SWITCH_OFF, "1")
    counts = Counts(case.counts.pairs, list(case.counts._columns))
    runtime = ResMadeRuntime(case.spec, network(case.spec).arrays())
    assert runtime.kernel is None
    assert not counts.are_compiled
    regions = [Region((replace(part.box, hints=None),)) for part in known]
    twins = [
        each.answers[0] for each in densities(Runtimes((runtime,), counts=counts), regions, "particles", budget, 5)
    ]
    expected_fields = [(answer.visited, answer.least, answer.most, answer.counted, answer.exact) for answer in answers]
    assert expected_fields == [
        (answer.visited, answer.least, answer.most, answer.counted, answer.exact) for answer in twins
    ]
    close = [a.density == pytest.approx(b.density, rel=1e-3, abs=1e-9) for a, b in zip(answers, twins, strict=True)]
    assert np.mean(close) >= 0.9  # rounding may turn one choice of a thousand
    same = [a.corrected == b.corrected for a, b, near in zip(answers, twins, close, strict=True) if near]
    assert np.mean(same) >= 0.95


def test_densities_take_it(case: Case) -> None:
    known = case.known(4)
    models = Runtimes((case.runtime,), counts=case.counts)
    regions = [Region((replace(part.box, hints=None),)) for part in known]
    answers = densities(models, regions, "particles", None, 9)
    assert [each.answers[0] for each in answers] == case.answers(known, None, 9)


def test_filters_with_nothing_to_ask_are_not_walked(case: Case) -> None:
    (box,) = case.boxes(6, 40)[:1]
    free = tuple(replace(item, constraint=type(item.constraint)(*_all_of(item))) for item in box.filters)
    (answer,) = case.answers([replace(case.counts.of_box(Box(free)), answer=None)], None, 0)
    assert (answer.density, answer.visited, answer.forward_rows) == (1.0, (), 0)


def _all_of(item: Any) -> tuple[Any, ...]:
    ones = np.ones(len(item.constraint.weights))
    return (ones,) if len(item.positions) == 1 else (ones, item.constraint.radices)


class TestTheModule:
    """What the compiled module is handed is checked: a mistake of ours is an exception, not a crash."""

    def test_bad_pairs(self) -> None:
        module, counts = kernel.compiled(), np.ones(4, dtype=np.int64)
        assert module is not None
        before, known, starts = np.zeros((4, 5), dtype=np.int64), np.zeros((1, 1), dtype=bool), np.arange(4)
        module.pairs(before, known, 1, 4, [(0, counts, starts, 0)], [])
        for column in (
            (1, counts, starts, 0),
            (0, counts, starts, 1),
            (0, counts, starts + 1, 0),
            (0, counts, starts - 1, 0),
            (0, counts, starts[:0], 0),
            (0, counts, starts[::-1].copy(), 0),
        ):
            with pytest.raises(ValueError, match="does not fit"):
                module.pairs(before, known, 1, 4, [column], [])
        with pytest.raises(ValueError, match="expected"):
            module.pairs(before, known, 2, 4, [], [])
        fits = np.array([0, 1, 1, 2, 2]), np.array([0, 3]), np.ones(2, dtype=np.int64)
        two = [(0, counts, starts, 0), (-1, counts, starts, 0)]
        module.pairs(before, known, 1, 4, two, [(1, 0, *fits)])
        for table in (
            (2, 0, *fits),
            (1, -1, *fits),
            (1, 0, np.array([0, 1, 1, 2]), *fits[1:]),
            (1, 0, np.array([0, 1, 0, 2, 2]), *fits[1:]),
            (1, 0, np.array([0, 1, 1, 2, 3]), *fits[1:]),
            (1, 0, fits[0], np.array([0, 4]), fits[2]),
            (1, 0, *fits[:2], fits[2][:1]),
        ):
            with pytest.raises(ValueError, match=r"sparse|expected"):
                module.pairs(before, known, 1, 4, two, [table])

    @pytest.mark.parametrize(
        "asked",
        [
            (-1, np.ones(3), (0,), (3,)),
            (99, np.ones(3), (0,), (3,)),
            (0, np.ones(4), (0,), (3,)),
            (0, np.ones(3), (0, 1), (3,)),
            (0, np.ones(3), (0,), (2,)),
            (0, np.ones(3, dtype=np.float32), (0,), (3,)),
        ],
    )
    def test_bad_filters(self, asked: tuple[Any, ...]) -> None:
        counts = Case(DIGITS).counts
        assert counts._module is not None
        with pytest.raises(ValueError, match=r"expected|digits|column"):
            counts._module.reading(counts._tables, *asked, False, False)

    def test_bad_questions(self) -> None:
        one, other = Case(DIGITS), Case(WIDE)
        (filters, *_), (strange, *_) = (
            [[each.counts.filter_counts(item).reading for item in box.filters] for box in each.boxes(1)]
            for each in (one, other)
        )
        module = one.counts._module
        assert module is not None
        assert one.runtime.kernel is not None
        with pytest.raises(ValueError, match="several tables"):
            module.cross((*filters, *strange))
        with pytest.raises(ValueError, match="no filters"):
            module.cross(())
        model, numbers = one.runtime.kernel._model, np.zeros(8)
        crossed, foreign = module.cross(tuple(filters))[0], module.cross(tuple(strange))[0]
        module.ask(model, crossed, None, 4, 4, 0.2, 0.75, numbers, numbers, 10.0)
        with pytest.raises(ValueError, match="does not fit"):
            module.ask(model, foreign, None, 4, 4, 0.2, 0.75, numbers, numbers, 10.0)
        with pytest.raises(ValueError, match="does not fit"):  # a position twice
            module.ask(model, module.cross((filters[0], filters[0]))[0], None, 4, 4, 0.2, 0.75, numbers, numbers, 10.0)
        for star in (((), 0.1), ((1, 0), 0.1), ((-1,), 0.1), ((len(filters),), 0.1)):
            with pytest.raises(ValueError, match="star"):
                module.ask(model, crossed, star, 4, 4, 0.2, 0.75, numbers, numbers, 10.0)
        with pytest.raises(ValueError, match="budget"):
            module.ask(model, crossed, None, 0, 4, 0.2, 0.75, numbers, numbers, 10.0)
        with pytest.raises(ValueError, match="expected"):
            module.ask(model, crossed, None, 4, 4, 0.2, 0.75, numbers[:3], numbers, 10.0)
