"""Every method against enumeration: the contract that each sampler must pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.automata.language import Automaton, Language
from countless.data.summaries.counting import count_pairs
from countless.engine.answer import Answer
from countless.engine.columns.enumeration import exact
from countless.engine.columns.particle_budget import offsets
from countless.engine.columns.particles import particles
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.density import densities
from countless.engine.fusion.pair_bounds import Counts
from countless.engine.methods import METHODS, Method, for_columns, mean, of_model, uses_evidence
from countless.engine.paper.columns import draw, progressive, skipping
from countless.engine.runtimes import Runtimes
from countless.errors import CountlessError, QueryTooLargeError
from countless.region import Box, Filter, Region, TextFilter
from countless.spec import ModelSpec
from tests.data.summaries.test_pair_counts import encoded
from tests.engine.columns.test_resmade import network
from tests.engine.text.table import letters_of
from tests.mocks import JointRuntime, MockRuntime, PrefixRuntime, box_of, brute_force, digit_range

COLUMN_METHODS = for_columns()
SAMPLERS = [name for name in COLUMN_METHODS if name != "exact"]
SKIPPING = [name for name in SAMPLERS if "progressive" not in name and name != "multi-order"]
SEEDS = 400
SPEC = ModelSpec((3, 4, 5, 4), hidden=16, blocks=1, embedding=5, groups=(1, 2, 1), orders=((0, 1, 2, 3), (1, 3, 2, 0)))


def ask(method: str, runtime: MockRuntime, box: Box, budget: int, seed: int) -> Answer:
    """What a method answers; one that needs several orders is asked of the same model twice."""
    orders = [runtime, runtime] if method.startswith("multi-order") else [runtime]
    (answer,) = COLUMN_METHODS[method](orders, [box], budget, seed)
    return answer


def density(runtime: MockRuntime, region: Region, method: str, budget: int | None, seed: int) -> float:
    return densities(Runtimes((runtime,)), [region], method, budget, seed)[0].value


def random_joint(seed: int, sizes: tuple[int, ...] = (4, 3, 5, 2)) -> JointRuntime:
    rng = np.random.default_rng(seed)
    return JointRuntime(rng.gamma(0.3, size=sizes) + 1e-3, order=tuple(int(p) for p in rng.permutation(len(sizes))))


@st.composite
def models_and_boxes(draw: Any) -> tuple[PrefixRuntime, Box]:
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    order = tuple(draw(st.permutations(range(len(sizes)))))
    allowed = {}
    for position in draw(st.sets(st.integers(0, len(sizes) - 1))):
        allowed[position] = draw(st.lists(st.integers(0, sizes[position] - 1), unique=True))
    return PrefixRuntime(sizes, draw(st.integers(0, 1000)), order), box_of(allowed, sizes)


@given(models_and_boxes())
@settings(deadline=None)
def test_particles_with_room_for_all_are_exact(case: tuple[PrefixRuntime, Box]) -> None:
    runtime, box = case
    answer = particles(runtime, box, 10_000, offsets(0, 0, len(runtime.sizes)))
    assert answer.exact
    assert answer.density == pytest.approx(exact(runtime, box).density, rel=1e-12, abs=1e-300)


@given(seed=st.integers(0, 10_000), data=st.data())
@settings(deadline=None)
def test_exact_is_the_mass_of_the_box(seed: int, data: st.DataObject) -> None:
    runtime = random_joint(seed)
    allowed = {
        position: data.draw(st.lists(st.integers(0, size - 1), unique=True, min_size=1))
        for position, size in enumerate(runtime.sizes)
        if data.draw(st.booleans())
    }
    answer = exact(runtime, box_of(allowed, runtime.sizes))
    assert answer.density == pytest.approx(brute_force(runtime.joint, allowed), rel=1e-9)


@pytest.mark.parametrize("method", SAMPLERS)
@pytest.mark.parametrize("budget", [1, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_sampled_means_are_unbiased(method: str, budget: int, seed: int) -> None:
    """The mean over seeds is within its standard error of the truth, on a model whose conditionals agree."""
    runtime = random_joint(seed)
    box = box_of({0: [0, 2, 3], 1: [0, 2], 2: [1, 2, 4], 3: [1]}, runtime.sizes)
    truth = exact(runtime, box).density
    samples = [ask(method, runtime, box, budget, s).density for s in range(SEEDS)]
    error = np.std(samples, ddof=1) / np.sqrt(SEEDS)
    assert abs(np.mean(samples) - truth) < 4.5 * error + 1e-12


@pytest.mark.parametrize("method", SKIPPING)
def test_skipping_methods_are_unbiased_for_conditionals_that_do_not_agree(method: str) -> None:
    runtime = PrefixRuntime((5, 4, 6, 3), seed=11, order=(2, 0, 3, 1))
    box = box_of({0: [0, 1, 4], 2: [0, 2, 3, 5], 1: [1, 2]}, runtime.sizes)
    truth = exact(runtime, box).density
    samples = [ask(method, runtime, box, 4, s).density for s in range(SEEDS)]
    assert abs(np.mean(samples) - truth) < 4.5 * np.std(samples, ddof=1) / np.sqrt(SEEDS)


@pytest.mark.parametrize("method", list(COLUMN_METHODS))
@pytest.mark.parametrize("constrained", [(), (1,), (3,), (0, 1, 2, 3)])
def test_none_one_and_all_columns(method: str, constrained: tuple[int, ...]) -> None:
    runtime = random_joint(5)
    allowed = {position: [0] for position in constrained}
    truth = brute_force(runtime.joint, allowed)
    answer = ask(method, runtime, box_of(allowed, runtime.sizes), 3000, 0)
    assert answer.density == pytest.approx(truth, rel=0.15)
    if not constrained:
        assert answer.density == 1.0
        assert answer.exact
        assert answer.visited == ()


@pytest.mark.parametrize("method", list(COLUMN_METHODS))
def test_a_filter_that_allows_nothing_is_zero(method: str) -> None:
    runtime = random_joint(5)
    answer = ask(method, runtime, box_of({1: [], 2: [0]}, runtime.sizes), 10, 0)
    assert answer.density == 0.0


@pytest.mark.parametrize("method", [*SKIPPING, "exact"])
def test_a_filter_that_allows_everything_is_skipped(method: str) -> None:
    runtime = PrefixRuntime((3, 4, 2), seed=1)
    everything = box_of({0: [0, 1, 2], 1: [1, 2]}, runtime.sizes)
    alone = box_of({1: [1, 2]}, runtime.sizes)
    one, two = (ask(method, runtime, box, 50, 0) for box in (everything, alone))
    assert one == two
    assert one.visited == (1,)


class TestSeveralPositions:
    """A column of two digits: free digits stay MASK, and particles in different automaton states walk together."""

    RADICES = (4, 5)

    def case(self, low: int, high: int, seed: int = 0) -> tuple[JointRuntime, Box, float]:
        rng = np.random.default_rng(seed)
        joint = rng.gamma(0.5, size=(3, *self.RADICES, 2)) + 1e-3
        runtime = JointRuntime(joint)
        box = Box(
            (Filter((1, 2), digit_range(low, high, self.RADICES)), *box_of({0: [0, 2], 3: [1]}, runtime.sizes).filters)
        )
        flat = runtime.joint.reshape(3, 20, 2)
        return runtime, box, float(flat[[0, 2]][:, low : high + 1, 1].sum())

    @pytest.mark.parametrize(("low", "high"), [(0, 19), (3, 12), (5, 9), (7, 7), (0, 3), (16, 19), (4, 15)])
    def test_exact_and_particles(self, low: int, high: int) -> None:
        runtime, box, truth = self.case(low, high)
        assert exact(runtime, box).density == pytest.approx(truth, rel=1e-9)
        assert particles(runtime, box, 1000, offsets(0, 0, len(runtime.sizes))).density == pytest.approx(
            truth, rel=1e-9
        )

    @pytest.mark.parametrize("method", SAMPLERS)
    def test_sampled(self, method: str) -> None:
        runtime, box, truth = self.case(3, 12)
        sampled_densities = [ask(method, runtime, box, 4, s).density for s in range(SEEDS)]
        assert abs(np.mean(sampled_densities) - truth) < 4.5 * np.std(sampled_densities, ddof=1) / np.sqrt(SEEDS)


class TestDensity:
    def test_disjoint_boxes_add_up(self) -> None:
        runtime = random_joint(2)
        boxes = tuple(box_of({0: [symbol], 1: [0, 1]}, runtime.sizes) for symbol in (0, 2))
        total = density(runtime, Region(boxes), "exact", None, 0)
        assert total == pytest.approx(brute_force(runtime.joint, {0: [0, 2], 1: [0, 1]}), rel=1e-9)

    def test_a_union_is_clipped_to_its_bounds(self) -> None:
        runtime = PrefixRuntime((3, 3), seed=0)
        part, whole = box_of({0: [0]}, runtime.sizes), box_of({1: [0, 1]}, runtime.sizes)
        alone = density(runtime, Region((whole,)), "exact", None, 0)
        clipped = density(runtime, Region((part,), cover=(part, whole)), "exact", None, 0)
        assert clipped >= alone > density(runtime, Region((part,)), "exact", None, 0)

    def test_no_box_is_nothing(self) -> None:
        assert density(random_joint(0), Region(()), "particles", None, 0) == 0.0

    def test_the_same_seed_gives_the_same_answer(self) -> None:
        runtime = random_joint(3)
        region = Region((box_of({0: [0, 1, 2], 1: [0, 1], 2: [0, 1, 2, 3], 3: [0]}, runtime.sizes),))
        first, second = (density(runtime, region, "particles", 3, 9) for _ in range(2))
        assert first == second

    def test_unknown_method(self) -> None:
        with pytest.raises(CountlessError, match="unknown method 'magic': choose one of particles"):
            density(random_joint(0), Region(()), "magic", None, 0)

    def test_a_method_for_text_only_and_one_for_columns_only(self) -> None:
        runtime = random_joint(0)
        with pytest.raises(CountlessError, match=r"'naive' is for text columns only: choose one of particles, .*exact"):
            density(runtime, Region((box_of({0: [0]}, runtime.sizes),)), "naive", None, 0)
        text = TextFilter(0, Language(Automaton.constant(letters_of("ab", ""), True), False, False))
        with pytest.raises(CountlessError, match="unknown method 'multi-order' for text: choose one of particles"):
            density(runtime, Region((Box((), (text,)),)), "multi-order", None, 0)

    def test_counts_are_for_methods_that_use_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A method that a plugin brings, too."""
        runtime = random_joint(0)
        table = encoded([(0, 0, 0, 0), (1, 0, 0, 0)], runtime.sizes)
        counts = Counts(count_pairs(table), [(position,) for position in range(4)])
        region = Region((box_of({0: [0], 1: [0]}, runtime.sizes),))
        for name, ask in COLUMN_METHODS.items():
            monkeypatch.setitem(METHODS, "mine", Method(ask, uses_counts=True))
            monkeypatch.setitem(METHODS, "other", Method(ask))
            runtimes = Runtimes((runtime, runtime) if name.startswith("multi-order") else (runtime,), counts=counts)
            (mine,), (other,), (answer_of_method,) = (
                densities(runtimes, [region], method, 20, 0) for method in ("mine", "other", name)
            )
            assert (mine.value, mine.answers[0].counted) == (0.5, True)
            assert (other.value != 0.5, other.answers[0].counted) == (True, False)
            assert answer_of_method == (mine if METHODS[name].uses_counts else other)

    def test_a_method_of_evidence_rows_has_no_density(self) -> None:
        """It is registered, and what the engine offers instead are the methods of the model alone."""
        assert [name for name in METHODS if uses_evidence(name)] == ["fused"]
        assert not uses_evidence("magic")
        assert of_model() == [name for name in METHODS if name != "fused"]
        with pytest.raises(CountlessError, match="unknown method 'fused': choose one of particles"):
            density(random_joint(0), Region(()), "fused", None, 0)

    def test_no_particles(self) -> None:
        with pytest.raises(CountlessError, match="must be at least 1"):
            density(random_joint(0), Region(()), "particles", 0, 0)


def test_exact_refuses_to_enumerate_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countless.engine.columns.enumeration.MOST_COMBINATIONS", 20)
    runtime = random_joint(0)
    with pytest.raises(QueryTooLargeError, match="use --method particles"):
        exact(runtime, box_of({0: [0, 1, 2], 1: [0, 1], 2: [0, 1, 2, 3]}, runtime.sizes))


def test_draw_follows_the_masses() -> None:
    masses = np.tile(np.array([0.0, 1.0, 3.0, 0.0]), (20_000, 1))
    symbols = draw(masses, masses.sum(axis=1), np.random.default_rng(0))
    assert set(symbols.tolist()) == {1, 2}
    assert np.mean(symbols == 2) == pytest.approx(0.75, abs=0.02)


def test_draw_never_leaves_the_allowed_symbols() -> None:
    masses = np.array([[1e-300, 0.0], [0.0, 0.0]])
    assert draw(masses, masses.sum(axis=1), np.random.default_rng(0)).tolist() == [0, 0]


@pytest.mark.parametrize("sampler", [progressive, skipping])
@pytest.mark.parametrize(("samples", "together"), [(1, 1000), (200, 1000), (200, 7), (3_000, 1000)])
def test_walking_paths_are_the_plain_ones(
    sampler: Any, samples: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The readable twin makes a whole forward pass for each position, and draws the same symbols."""
    monkeypatch.setattr("countless.engine.paper.columns.GROUP_PATHS", together)
    runtime = ResMadeRuntime(SPEC, network(SPEC).arrays(), order_index=1)
    radices = SPEC.sizes[1:3]
    box = Box((*box_of({0: [0, 2], 3: [1, 2]}, SPEC.sizes).filters, Filter((1, 2), digit_range(3, 9, radices))))
    quick, plain = (sampler(runtime, box, samples, np.random.default_rng(4), plain=twin) for twin in (False, True))
    assert quick.density == pytest.approx(plain.density, rel=1e-4)
    assert (quick.visited, quick.forward_rows) == (plain.visited, plain.forward_rows)


class UnmaskedRuntime(PrefixRuntime):
    """A model trained without masking: it has never read MASK before a position it predicts."""

    def conditional(self, codes: Any, position: int) -> Any:
        earlier = list(self.order[: self.order.index(position)])
        assert np.all(codes[:, earlier] < np.array(self.sizes)[earlier]), "it was given MASK to read"
        return super().conditional(codes, position)


def test_progressive_sampling_never_reads_mask() -> None:
    """Not even at the later digits of a range, which the leading digit has left free."""
    runtime = UnmaskedRuntime((3, 4, 5, 2), seed=3, order=(1, 2, 0, 3))
    box = Box((Filter((1, 2), digit_range(3, 17, (4, 5))), *box_of({3: [1]}, runtime.sizes).filters))
    for plain in (False, True):
        answer = progressive(runtime, box, 50, np.random.default_rng(0), plain=plain)
        assert 0 < answer.density < 1
        assert answer.visited == (1, 2, 0, 3)


def test_the_mean_of_answers() -> None:
    one = Answer(0.2, False, 10, (1,), 30, sampling_error=0.1)
    two = Answer(0.4, False, 10, (1,), 30, sampling_error=0.2)
    average = mean([one, two])
    assert average.density == pytest.approx(0.3)
    assert (average.particles, average.forward_rows) == (20, 60)
    assert average.sampling_error == pytest.approx(np.hypot(0.02, 0.08) / 2 / 0.3)
    assert mean([one, Answer(0.4, False, 10, (1,), 30)]).sampling_error is None
    assert mean([Answer(0.0, True, 1, (1,), 1)] * 2).sampling_error is None
