"""Every box gets the particles it needs, and its answer follows from the seed alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from countless.engine.columns import particle_budget as budget
from countless.engine.columns.enumeration import exact
from countless.engine.columns.particle_budget import adaptive, fixed, offsets, particles_for
from countless.region import Box
from tests.mocks import JointRuntime, PrefixRuntime, box_of

WIDE = (20, 20, 20, 6)


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is how a budget is chosen, whatever the bounds."""
    for name, value in {"LEAST": 32, "MOST": 256, "TARGET": 0.3}.items():
        monkeypatch.setattr(budget, name, value)


def wide(seed: int = 0, concentration: float = 0.05) -> JointRuntime:
    """A joint with far more combinations than particles; the smaller the concentration, the harder to sample."""
    rng = np.random.default_rng(seed)
    return JointRuntime(rng.gamma(concentration, size=WIDE) + 1e-9)


def broad_box(runtime: JointRuntime) -> Box:
    return box_of({position: list(range(0, WIDE[position], 2)) for position in range(4)}, runtime.sizes)


def hard() -> tuple[JointRuntime, Box]:
    """Few of many equal symbols lead on, and thinning does not know which."""
    joint = np.ones((1_001, 2))
    joint[:, 1] = 1e-4
    joint[::100, 1] = 0.5
    runtime = JointRuntime(joint)
    return runtime, box_of({0: list(range(1_000)), 1: [1]}, runtime.sizes)


def test_a_box_with_few_combinations_is_exact_at_once() -> None:
    runtime = wide()
    box = box_of({0: [1, 2], 2: [3]}, runtime.sizes)
    (answer,) = adaptive(runtime, [box], 0)
    assert answer.exact
    assert answer.sampling_error is None
    assert answer.density == pytest.approx(exact(runtime, box).density)
    assert answer == fixed(runtime, [box], budget.LEAST, 0)[0]


def test_a_hard_box_gets_more_particles_than_an_easy_one() -> None:
    easy, (runtime, box) = wide(concentration=50.0), hard()
    (smooth,), (rough,) = adaptive(easy, [broad_box(easy)], 0), adaptive(runtime, [box], 0)
    assert not smooth.exact
    assert not rough.exact
    assert smooth.particles <= budget.LEAST + 1
    assert rough.particles > 2 * budget.LEAST
    assert smooth.sampling_error is not None
    assert rough.sampling_error is not None
    assert smooth.sampling_error <= budget.TARGET


def test_an_easy_box_keeps_the_first_walks_answer() -> None:
    runtime = wide(concentration=50.0)
    (answer,) = adaptive(runtime, [broad_box(runtime)], 0)
    assert answer.density == fixed(runtime, [broad_box(runtime)], budget.LEAST, 0)[0].density


def test_a_hard_box_is_answered_by_a_fresh_walk() -> None:
    """Not by the first walk: the one that answers has not chosen its own size."""
    runtime, box = hard()
    (answer,) = adaptive(runtime, [box], 0)
    assert answer.density in [fixed(runtime, [box], 2**power, 0, stream=1)[0].density for power in (6, 7, 8)]


def test_the_work_of_both_walks_is_counted() -> None:
    runtime, box = hard()
    (answer,) = adaptive(runtime, [box], 0)
    first = fixed(runtime, [box], budget.LEAST, 0)[0]
    assert answer.forward_rows > first.forward_rows * 2


def test_answers_follow_from_the_seed_and_not_from_the_company() -> None:
    runtime = PrefixRuntime((6, 5, 6, 5, 6), seed=3)
    rng = np.random.default_rng(0)
    boxes = [
        box_of({p: np.flatnonzero(rng.random(runtime.sizes[p]) < 0.8).tolist() for p in range(5)}, runtime.sizes)
        for _ in range(6)
    ]
    together = adaptive(runtime, boxes, 7)
    assert together == [adaptive(runtime, [box], 7)[0] for box in boxes]
    assert any(not answer.exact for answer in together)


def test_adaptive_answers_are_unbiased() -> None:
    runtime = wide(concentration=0.1)
    box = broad_box(runtime)
    truth = exact(runtime, box).density
    densities = [adaptive(runtime, [box], seed)[0].density for seed in range(40)]
    assert abs(np.mean(densities) - truth) < 4.5 * np.std(densities, ddof=1) / np.sqrt(len(densities)) + 1e-9


@pytest.mark.parametrize("concentration", [0.2, 0.1, 0.05])
def test_a_walk_tells_its_sampling_error(concentration: float) -> None:
    """As far apart as answers from many seeds lie; a walk says so by itself. Where all is smooth they are nearer."""
    runtime = wide(concentration=concentration)
    walks = [fixed(runtime, [broad_box(runtime)], 64, seed)[0] for seed in range(60)]
    mean = np.mean([walk.sampling_error for walk in walks])
    densities = [walk.density for walk in walks]
    assert 0.4 < mean / (np.std(densities, ddof=1) / np.mean(densities)) < 3.0


def test_a_walk_that_lives_on_few_lucky_particles_says_so() -> None:
    runtime, box = hard()
    lucky = [answer for seed in range(20) if (answer := fixed(runtime, [box], 32, seed)[0]).density > 1e-3]
    assert lucky
    assert all(answer.sampling_error is not None and answer.sampling_error > 0.5 for answer in lucky)


def test_the_error_of_a_vanishing_density() -> None:
    joint = np.full((50, 2), 1.0)
    joint[:, 1] = 1e-300
    runtime = JointRuntime(joint)
    (answer,) = fixed(runtime, [box_of({0: list(range(49)), 1: [1]}, runtime.sizes)], 8, 0)
    assert 0 < answer.density < 1e-290
    assert answer.sampling_error is not None
    assert 0 < answer.sampling_error < 1


def test_particles_for() -> None:
    errors = [0.0, 0.1, 0.3, 0.5, 0.7, 2.0, math.inf]
    chosen = [particles_for(error) for error in errors]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (budget.LEAST, budget.MOST)


def test_longer_questions_begin_with_the_same_random_numbers() -> None:
    assert offsets(1, 2, 10)[:4].tolist() == offsets(1, 2, 4).tolist()
    assert offsets(1, 2, 4).tolist() != offsets(1, 3, 4).tolist() != offsets(2, 2, 4).tolist()
