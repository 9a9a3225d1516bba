"""The compiled walk against its NumPy twin."""

from __future__ import annotations

import resource
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from countless.arrays import FloatArray
from countless.engine.columns import kernel
from countless.engine.columns.particle_budget import Population, fixed, offsets
from countless.engine.columns.particles import particles
from countless.engine.columns.resmade import ResMadeRuntime
from countless.region import Box, DigitSet, Filter, ValueSet
from countless.spec import ModelSpec
from tests.engine.columns.test_resmade import SPECS, network

DIGITS = ModelSpec((3, 5, 4, 2, 6, 3, 4, 30), hidden=37, blocks=2, embedding=6, groups=(1, 2, 1, 3, 1))
SCATTERED = ModelSpec(
    (3, 5, 4, 2, 6), hidden=20, blocks=1, embedding=40, groups=(1, 2, 2), orders=((1, 3, 0, 4, 2),)
)  # the digits of two columns taken in turn; features wider than every position
WIDE = ModelSpec((4, 300, 16, 211, 2, 31), hidden=48, blocks=1, embedding=8, groups=(1, 1, 2, 1, 1))
MANY = 100_000


@pytest.fixture(scope="module", params=[*SPECS, DIGITS, SCATTERED], ids=str)
def runtime(request: Any) -> ResMadeRuntime:
    runtime_of_kind = ResMadeRuntime(request.param, network(request.param).arrays())
    assert runtime_of_kind.kernel is not None, (
        "the compiled kernel was not built: run pip install again with a C compiler"
    )
    return runtime_of_kind


def random_box(spec: ModelSpec, rng: np.random.Generator, wide: bool = False) -> Box:
    """Filters on some columns: sets with fractions, and what a range or a list of values over digits makes."""
    filters = []
    start = 0
    for count in spec.groups:
        positions = tuple(range(start, start + count))
        start += count
        if rng.random() < 0.3:
            continue
        radices = tuple(spec.sizes[position] for position in positions)
        size = int(np.prod(radices))
        weights = rng.choice([0.0, 0.5, 1.0], size=size, p=[0.1, 0.1, 0.8] if wide else [0.6, 0.1, 0.3])
        if count > 1 and rng.random() < 0.5:
            low, high = np.sort(rng.integers(0, size + 1, size=2))
            weights = ((np.arange(size) >= low) & (np.arange(size) < high)).astype(np.float64)
        filters.append(Filter(positions, DigitSet(weights, radices) if count > 1 else ValueSet(weights)))
    return Box(tuple(filters))


def test_unthinned_walks_agree_tightly(runtime: ResMadeRuntime) -> None:
    rng = np.random.default_rng(0)
    numbers = offsets(0, 0, len(runtime.sizes))
    for _ in range(60):
        box = random_box(runtime.spec, rng)
        (answer,) = fixed(runtime, [box], MANY, 0)
        twin = particles(runtime, box, MANY, numbers)
        assert answer.density == pytest.approx(twin.density, rel=2e-5, abs=1e-12)
        assert (answer.exact, answer.visited) == (True, twin.visited)
        if twin.density > 0:
            assert (answer.particles, answer.forward_rows) == (twin.particles, twin.forward_rows)


def test_thinned_walks_take_the_same_random_numbers(runtime: ResMadeRuntime) -> None:
    """Rounding may turn one choice of a thousand; on the whole the two come to the same answers."""
    rng = np.random.default_rng(1)
    agree = []
    for seed in range(60):
        box = random_box(runtime.spec, rng, wide=True)
        (answer,) = fixed(runtime, [box], 4, seed)
        twin = particles(runtime, box, 4, offsets(seed, 0, len(runtime.sizes)))
        assert answer.exact == twin.exact
        agree.append(answer.density == pytest.approx(twin.density, rel=1e-4, abs=1e-12))
        if agree[-1] and not twin.exact:
            assert answer.sampling_error == pytest.approx(twin.sampling_error, rel=1e-2, abs=1e-4)
    assert np.mean(agree) >= 0.95


@dataclass(frozen=True)
class RandomHints:
    """Anything may be a hint: answers must stay unbiased."""

    sizes: tuple[int, ...]

    def ahead(self, index: int, later: Sequence[int]) -> FloatArray | None:
        return np.random.default_rng([index, *later]).random(self.sizes[index]) if later else None


def hinted(box: Box) -> Box:
    return replace(box, hints=RandomHints(tuple(len(box_filter.constraint.weights) for box_filter in box.filters)))


def test_hinted_walks_take_the_same_random_numbers(runtime: ResMadeRuntime) -> None:
    rng = np.random.default_rng(5)
    boxes = [hinted(random_box(runtime.spec, rng, wide=True)) for _ in range(40)]
    together = Population(runtime, boxes, 7, hinted=True).walk(4)
    twins = [particles(runtime, box, 4, offsets(7, 0, len(runtime.sizes)), hinted=True) for box in boxes]
    agree = [a.density == pytest.approx(b.density, rel=1e-4, abs=1e-12) for a, b in zip(together, twins, strict=True)]
    assert np.mean(agree) >= 0.95
    if len(runtime.sizes) > 4:
        assert [one.density for one in together] != [one.density for one in fixed(runtime, boxes, 4, 7)]


@pytest.mark.parametrize("budget", [4, 40])
@pytest.mark.parametrize("hints", [False, True])
def test_wide_positions_are_thinned_as_numpy_does_it(budget: int, hints: bool) -> None:
    runtime, rng = ResMadeRuntime(WIDE, network(WIDE).arrays()), np.random.default_rng(8)
    boxes = [hinted(random_box(WIDE, rng, wide=True)) for _ in range(40)]
    steps = Population(runtime, boxes, 3, hints).walk(budget)
    twins = [particles(runtime, box, budget, offsets(3, 0, len(WIDE.sizes)), hinted=hints) for box in boxes]
    assert [one.exact for one in steps] == [one.exact for one in twins]
    agree = [a.density == pytest.approx(b.density, rel=1e-4, abs=1e-12) for a, b in zip(steps, twins, strict=True)]
    assert np.mean(agree) >= 0.95


@pytest.mark.parametrize("budget", [250, 400, 1_000])
@pytest.mark.parametrize("unlikely", [-20.0, -60.0, -500.0])
def test_children_whose_chance_is_next_to_nothing(budget: int, unlikely: float) -> None:
    """There are more of them than particles, and fewer whose chance is more than 0 in single precision."""
    weights, starts = network(WIDE).arrays(), np.cumsum([0, *(size + 1 for size in WIDE.sizes)])
    for position in (1, 3):
        weights["bias"][starts[position] + 1 : starts[position + 1]] = unlikely
    runtime = ResMadeRuntime(WIDE, weights)
    box = Box(tuple(Filter((position,), ValueSet(np.arange(WIDE.sizes[position]) % 3 != 1)) for position in (1, 3, 5)))
    (answer,) = fixed(runtime, [box], budget, seed=3)
    twin = particles(runtime, box, budget, offsets(3, 0, len(WIDE.sizes)))
    assert answer.density == pytest.approx(twin.density, rel=1e-4)


@pytest.mark.parametrize("hints", [False, True])
def test_the_mean_over_seeds_is_the_exact_density(hints: bool) -> None:
    runtime = ResMadeRuntime(DIGITS, network(DIGITS).arrays())
    box = hinted(random_box(DIGITS, np.random.default_rng(4), wide=True))
    truth = fixed(runtime, [box], MANY, 0)[0].density
    densities = [Population(runtime, [box], seed, hints).walk(5)[0].density for seed in range(2000)]
    assert abs(np.mean(densities) - truth) < 4.5 * np.std(densities, ddof=1) / np.sqrt(len(densities))


def test_a_batch_answers_as_one_by_one(runtime: ResMadeRuntime) -> None:
    """To the last bit: what questions share must not change their answers."""
    rng = np.random.default_rng(2)
    boxes = [random_box(runtime.spec, rng) for _ in range(20)]
    parts = [Box(box.filters[:count]) for box in boxes for count in range(len(box.filters))]
    boxes = [boxes[index] for index in rng.permutation(len(boxes))] + parts + boxes[:3]
    for budget in (3, MANY):
        assert fixed(runtime, boxes, budget, 5) == [fixed(runtime, [box], budget, 5)[0] for box in boxes]


def test_many_threads_get_the_answers_of_one() -> None:
    runtime = ResMadeRuntime(DIGITS, network(DIGITS).arrays())
    rng = np.random.default_rng(3)
    boxes = [random_box(DIGITS, rng) for _ in range(40)]
    expected = [fixed(runtime, [box], 7, 1)[0] for box in boxes]
    answers_by_thread: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        answers_by_thread[number] = [fixed(runtime, [box], 7, 1)[0] for _ in range(5) for box in boxes]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answers == expected * 5 for answers in answers_by_thread.values())
    assert len(answers_by_thread) == 4


def test_a_walk_that_takes_much_memory_leaves_none_of_it() -> None:
    spec = ModelSpec((90, 90, 2), hidden=256, blocks=2, embedding=4)  # 8,100 particles of 5 layers
    runtime = ResMadeRuntime(spec, network(spec).arrays())
    symbols = [(position, np.arange(size)) for position, size in enumerate(spec.sizes)]
    large, small = (
        Box(
            tuple(
                Filter((position,), ValueSet((row_symbols < min(most, row_symbols[-1])).astype(np.float64)))
                for position, row_symbols in symbols
            )
        )
        for most in (89, 1)
    )
    before = fixed(runtime, [small], MANY, 0)[0].density
    resident_bytes = []
    for _ in range(3):
        (answer,) = fixed(runtime, [large], MANY, 0)
        assert answer.particles == 89 * 89
        assert fixed(runtime, [small], MANY, 0)[0].density == before
        resident_bytes.append(_resident_bytes())
    assert max(resident_bytes) - min(resident_bytes) < 2**25
    twin = particles(runtime, large, MANY, offsets(0, 0, len(spec.sizes)))
    assert answer.density == pytest.approx(twin.density, rel=2e-5)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_nothing_is_left_after_an_impossible_step() -> None:
    runtime = ResMadeRuntime(DIGITS, network(DIGITS).arrays())
    none = Box((Filter((0,), ValueSet(np.zeros(3))), Filter((7,), ValueSet(np.arange(30) < 4))))
    assert fixed(runtime, [none], 10, 0)[0].density == 0.0


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([0.5, 0.6, 0.75, 1.0]))
@settings(deadline=None, max_examples=50)
def test_any_power_and_budget(seed: int, budget: int, power: float) -> None:
    runtime = small()
    box = random_box(DIGITS, np.random.default_rng(seed), wide=True)
    (answer,) = fixed(runtime, [box], budget, seed, power=power)
    assert np.isfinite(answer.density)
    assert answer.density >= 0.0
    assert answer.particles <= budget + 1 or answer.exact


RUNTIMES: list[ResMadeRuntime] = []


def small() -> ResMadeRuntime:
    if not RUNTIMES:
        RUNTIMES.append(ResMadeRuntime(DIGITS, network(DIGITS).arrays()))
    return RUNTIMES[0]


class TestTheModule:
    """What the compiled module is handed is checked: a mistake of ours is an exception, not a crash."""

    def step(self, **changed: Any) -> tuple[Any, ...]:
        weights, following = np.ones((2, 4)), np.zeros((2, 4), dtype=np.int64)
        step = {"position": 0, "depth": 0, "ends": True, "slot": -1, "opens": True, "start": 1}
        return tuple(({**step, "weights": weights, "next": following, "hint": None} | changed).values())

    def walk(self, *steps: tuple[Any, ...], budget: int = 4, numbers: int = 8) -> Any:
        module, runtime = kernel.compiled(), small()
        assert module is not None
        assert runtime.kernel is not None
        return module.walk(runtime.kernel._model, budget, 0.75, np.zeros(numbers), list(steps))

    def test_a_good_step(self) -> None:
        ((density, exact, most, rows, variance),) = self.walk(self.step())
        assert (round(density, 5), exact, most, rows, variance) == (1.0, True, 1, 1.0, 0.0)

    @pytest.mark.parametrize(
        "changed",
        [
            {"position": 8},
            {"position": -1},
            {"depth": 1},
            {"slot": -2},
            {"opens": False},
            {"weights": np.ones((2, 5))},
            {"weights": np.ones((0, 4))},
            {"weights": np.ones((2, 4), dtype=np.float32)},
            {"next": np.zeros((2, 3), dtype=np.int64)},
            {"hint": np.ones(3)},
            {"hint": np.ones(4, dtype=np.float32)},
            {"start": 2},
            {"start": -1},
        ],
    )
    def test_bad_steps(self, changed: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"step|state|expected"):
            self.walk(self.step(**changed))

    def test_bad_calls(self) -> None:
        with pytest.raises(ValueError, match="budget"):
            self.walk(self.step(), budget=0)
        with pytest.raises(ValueError, match="offsets"):
            self.walk(self.step(), numbers=0)


def test_without_the_compiled_module_numpy_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.SWITCH_OFF, "1")
    runtime = ResMadeRuntime(DIGITS, network(DIGITS).arrays())
    assert runtime.kernel is None
    box = random_box(DIGITS, np.random.default_rng(4))
    assert fixed(runtime, [box], 9, 2)[0].density == pytest.approx(fixed(small(), [box], 9, 2)[0].density, rel=1e-4)


@given(st.data())
def test_tables_of_digits(data: st.DataObject) -> None:
    radices = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    size = data.draw(st.integers(1, int(np.prod(radices))))
    kind = data.draw(st.sampled_from([np.bool_, np.float64]))
    weights: NDArray[Any] = np.array(
        data.draw(st.lists(st.sampled_from([0, 1, 1]), min_size=size, max_size=size)), dtype=kind
    )
    if kind is np.float64:
        weights[data.draw(st.integers(0, size - 1))] *= 0.5
    module = kernel.compiled()
    assert module is not None
    listed = data.draw(st.booleans())
    digits = DigitSet(weights, radices, listed)
    table, expected = kernel.tabulated(digits, module), digits.transitions
    for transitions, twin in zip(table, expected, strict=True):
        assert np.array_equal(transitions.weights, twin.weights)
        assert np.array_equal(transitions.next, twin.next)


@pytest.mark.parametrize("radices", [(), (0, 3), (2, 2), (1 << 20, 1 << 20), (1,) * 17])
def test_digits_that_do_not_fit_are_refused(radices: tuple[int, ...]) -> None:
    module = kernel.compiled()
    assert module is not None
    with pytest.raises(ValueError, match="digits"):
        module.digits(np.ones(5, dtype=np.bool_), radices, False)
