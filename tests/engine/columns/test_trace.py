"""Walks that keep their particles: the compiled one against its twin, and both against what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from countless.engine.answer import Trace, Traced
from countless.engine.columns.enumeration import exact
from countless.engine.columns.particle_budget import offsets
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.columns.trace import trace, traced
from countless.engine.distributions.joint import Axis, joint_masses, with_axes
from countless.engine.runtimes import Runtimes
from countless.region import Box, Filter, Region, ValueSet
from tests.engine.columns.test_kernel import DIGITS, MANY, SCATTERED, random_box
from tests.engine.columns.test_resmade import SPECS, network
from tests.mocks import JointRuntime, PrefixRuntime


@pytest.fixture(scope="module", params=[*SPECS, DIGITS, SCATTERED], ids=str)
def runtime(request: Any) -> ResMadeRuntime:
    resmade = ResMadeRuntime(request.param, network(request.param).arrays())
    assert resmade.kernel is not None
    return resmade


def both(runtime: ResMadeRuntime, trace_request: Trace, budget: int, seed: int = 0) -> tuple[Traced, Traced]:
    numbers = offsets(seed, 0, len(runtime.sizes))
    assert runtime.kernel is not None
    return runtime.kernel.trace(trace_request, budget, numbers), trace(runtime, trace_request, budget, numbers)


@pytest.mark.parametrize("expand", [True, False])
def test_whole_traces_agree_and_add_up_to_the_density(runtime: ResMadeRuntime, expand: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        box = random_box(runtime.spec, rng)
        if not box.filters or all(box_filter.constraint.start == 0 for box_filter in box.filters):
            continue
        labels = rng.choice(len(runtime.sizes), size=2)
        compiled, twin = both(runtime, Trace(box, labels.tolist(), expand), MANY)
        np.testing.assert_array_equal(compiled.symbols, twin.symbols)
        np.testing.assert_allclose(compiled.masses, twin.masses, rtol=1e-4, atol=1e-12)
        assert compiled.exact
        assert compiled.masses.sum() == pytest.approx(exact(runtime, box).density, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("unlabelled", [None, 3])
@pytest.mark.parametrize("scattered", [True, False])
def test_thinned_traces_take_the_same_random_numbers(
    runtime: ResMadeRuntime, scattered: bool, unlabelled: int | None
) -> None:
    rng = np.random.default_rng(1)
    agree = []
    for seed in range(40):
        box = random_box(runtime.spec, rng, wide=True)
        if not box.filters or all(box_filter.constraint.start == 0 for box_filter in box.filters):
            continue
        compiled, twin = both(runtime, Trace(box, (0, 1), scattered=scattered, unlabelled=unlabelled), 6, seed)
        assert compiled.exact == twin.exact
        agree.append(
            np.array_equal(compiled.symbols, twin.symbols) and np.allclose(compiled.masses, twin.masses, rtol=1e-3)
        )
    assert np.mean(agree) >= 0.9


def test_a_box_that_asks_nothing_is_one_row_of_masks() -> None:
    (traced_box,) = [traced([PrefixRuntime((2, 3), 0)], Trace(Box()), 10, 0)]
    assert traced_box.symbols.tolist() == [[2, 3]]
    assert traced_box.masses.tolist() == [1.0]


def axis(sizes: tuple[int, ...], column: int) -> Axis:
    return Axis(column, (column,), (sizes[column],), sizes[column])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("target", [0, 1, 3])
def test_a_column_is_spread_as_the_joint_says(order: tuple[int, ...], target: int) -> None:
    """Before the evidence and after it, with a filter of its own and without."""
    rng = np.random.default_rng(3)
    joint = rng.random((3, 4, 2, 5)) ** 3
    runtime = JointRuntime(joint, order)
    sizes = joint.shape
    weights = [rng.choice([0.0, 0.5, 1.0], size=size, p=[0.2, 0.2, 0.6]) for size in sizes]
    box = Box(tuple(Filter((p,), ValueSet(weights[p])) for p in range(4)))
    distribution = joint_masses(Runtimes((runtime,)), Region((box,)), [axis(sizes, target)], 1, 0)
    truth = np.einsum("abcd,a,b,c,d->abcd", joint / joint.sum(), *weights)
    truth = truth.sum(axis=tuple(p for p in range(4) if p != target))
    assert distribution.exact
    assert distribution.codes[:, 0].tolist() == np.flatnonzero(truth).tolist()
    np.testing.assert_allclose(distribution.masses, truth[truth > 0])


def test_columns_together_and_boxes_that_are_disjoint() -> None:
    rng = np.random.default_rng(4)
    joint = rng.random((3, 4, 2))
    runtime, sizes = JointRuntime(joint), joint.shape
    first_box = Box((Filter((0,), ValueSet(np.array([1.0, 0.0, 0.0]))),))
    second_box = Box((Filter((0,), ValueSet(np.array([0.0, 1.0, 1.0]))), Filter((2,), ValueSet(np.array([0.0, 1.0])))))
    axes = [axis(sizes, 2), axis(sizes, 1)]
    distribution = joint_masses(Runtimes((runtime,)), Region((first_box, second_box)), axes, 1, 0)
    truth = joint / joint.sum()
    expected = truth[0].T + np.stack([np.zeros(4), truth[1:, :, 1].sum(axis=0)])
    assert distribution.codes.tolist() == [[a, b] for a in range(2) for b in range(4)]
    np.testing.assert_allclose(distribution.masses, expected.ravel())
    nothing = joint_masses(Runtimes((runtime,)), Region(()), axes, 2, 0)
    assert len(nothing.masses) == 0


def test_thinning_keeps_every_value_and_the_mean() -> None:
    """With far fewer particles than combinations, a rare value that comes first in the order is still found."""
    rng = np.random.default_rng(5)
    joint = rng.random((4, 12, 12, 12, 2))
    joint[3] *= 1e-3  # the rare value
    runtime, sizes = JointRuntime(joint), joint.shape
    box = Box(tuple(Filter((p,), ValueSet(rng.choice([0.0, 1.0], size=sizes[p], p=[0.3, 0.7]))) for p in (1, 2, 3)))
    weights = [box_filter.constraint.weights for box_filter in box.filters]
    truth = np.einsum("abcde,b,c,d->a", joint / joint.sum(), *weights)
    trace = Trace(with_axes(box, [axis(sizes, 0)]), (0,), expand=False)
    masses = []
    for seed in range(60):
        rows = traced([runtime], trace, 100, seed)
        assert not rows.exact
        assert set(rows.symbols[:, 0]) == {0, 1, 2, 3}
        masses.append(np.bincount(rows.symbols[:, 0], rows.masses))
    np.testing.assert_allclose(np.mean(masses, axis=0), truth, rtol=0.12)
    assert np.std(masses, axis=0)[3] < 0.5 * truth[3]


def test_particles_of_equal_mass_do_not_all_take_the_same_quantile() -> None:
    """With parents of equal mass, one shared offset would give every one of them the same symbol."""
    runtime = JointRuntime(np.ones((40, 40, 5)))
    trace = Trace(with_axes(Box(), [axis((40, 40, 5), index) for index in range(3)]), power=1.0, scattered=True)
    for seed in range(5):
        rows = traced([runtime], trace, 40, seed)
        shares = np.bincount(rows.symbols[:, 2], rows.masses)
        assert shares.min() > 0.05
        seconds = np.bincount(rows.symbols[:, 1], rows.masses, minlength=40)
        assert (seconds > 0).sum() > 10
