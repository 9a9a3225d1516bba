"""Given rows under a model: probabilities and completions against enumeration of the joint distribution."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from countless.arrays import FloatArray, IntArray
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.columns.runtime import Runtime, softmax
from countless.engine.distributions import likelihood as conditional
from countless.engine.distributions.completion import Completions
from countless.engine.distributions.likelihood import completions, log_probabilities, row_log_probabilities
from tests.engine.columns.test_resmade import SEVERAL, SPECS, network, random_codes
from tests.mocks import JointRuntime, PrefixRuntime

SHAPE = (2, 3, 4, 2)
ORDERS = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)]


def random_joint(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)


def every_row(shape: tuple[int, ...]) -> IntArray:
    return np.array(list(itertools.product(*map(range, shape))))


def masked_rows(shape: tuple[int, ...], rows: int, seed: int = 0) -> IntArray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(size + 1, size=rows) for size in shape], axis=1)


def posterior(joint: FloatArray, row: IntArray, axes: list[int]) -> FloatArray:
    """The distribution of some axes, given all others that are not MASK, by summing up the joint one."""
    index = tuple(
        slice(None) if axis in axes or symbol == joint.shape[axis] else slice(symbol, symbol + 1)
        for axis, symbol in enumerate(row.tolist())
    )
    others = tuple(axis for axis in range(joint.ndim) if axis not in axes)
    masses = joint[index].sum(axis=others).ravel()
    return np.asarray(masses / masses.sum())


def plain(runtime: Runtime[Any], row: IntArray) -> float:
    """The log-probability of a row by a whole forward pass for each symbol, MASK elsewhere: the definition."""
    codes = np.array([runtime.sizes])
    total = 0.0
    for position in runtime.order:
        if row[position] < runtime.sizes[position]:
            total += float(np.log(softmax(runtime.conditional(codes, position))[0, row[position]]))
            codes[0, position] = row[position]
    return total


@pytest.mark.parametrize("order", ORDERS)
def test_all_rows_together_are_certain(order: tuple[int, ...]) -> None:
    joint = random_joint()
    log_probs = row_log_probabilities([JointRuntime(joint, order)], every_row(SHAPE))
    np.testing.assert_allclose(np.exp(log_probs), joint.ravel(), atol=1e-12)


def test_the_mean_over_orders() -> None:
    runtimes = [PrefixRuntime(SHAPE, 1, order) for order in ORDERS]
    probs = np.exp(row_log_probabilities(runtimes, every_row(SHAPE)))
    each = [np.exp(log_probabilities(runtime, every_row(SHAPE)).sum(axis=1)) for runtime in runtimes]
    np.testing.assert_allclose(probs, np.mean(each, axis=0))
    assert probs.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_masked_is_left_out(order: tuple[int, ...]) -> None:
    rows = masked_rows(SHAPE, 60)
    for runtime in (JointRuntime(random_joint(), order), PrefixRuntime(SHAPE, 3, order)):
        log_probs = log_probabilities(runtime, rows)
        assert (log_probs[rows == np.array(SHAPE)] == 0).all()
        np.testing.assert_allclose(log_probs.sum(axis=1), [plain(runtime, row) for row in rows])


@pytest.mark.parametrize("spec", [*SPECS, SEVERAL])
def test_the_network_walks_as_it_passes(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "ROWS", 16)
    for order in range(len(spec.orders)):
        runtime = ResMadeRuntime(spec, network(spec).arrays(), order)
        rows = random_codes(spec, 40)
        expected = [plain(runtime, row) for row in rows]
        np.testing.assert_allclose(log_probabilities(runtime, rows).sum(axis=1), expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(runtime.start().done, spec.hidden)  # what all questions begin with is as it was


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("column", range(4))
def test_completions_are_conditionals_of_the_joint(order: tuple[int, ...], column: int) -> None:
    joint, rows = random_joint(), masked_rows(SHAPE, 50)
    completed = completions([JointRuntime(joint, order)], rows, [column], SHAPE[column])
    np.testing.assert_allclose(
        completed.dense(SHAPE[column]), [posterior(joint, row, [column]) for row in rows], atol=1e-9
    )
    np.testing.assert_allclose(completed.kept_share, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_completions_of_conditionals_that_do_not_agree(seed: int) -> None:
    """Bayes' rule on the model's own factors, where no joint distribution stands behind them; several orders."""
    runtimes = [PrefixRuntime(SHAPE, seed, order) for order in ORDERS]
    rows = masked_rows(SHAPE, 20, seed)
    for column in range(4):
        completed = completions(runtimes, rows, [column], SHAPE[column]).dense(SHAPE[column])
        for row, mine in zip(rows, completed, strict=True):
            tried = np.tile(row, (SHAPE[column], 1))
            tried[:, column] = np.arange(SHAPE[column])
            expected = np.exp(row_log_probabilities(runtimes, tried))
            np.testing.assert_allclose(mine, expected / expected.sum())


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 2, 0), (1, 2, 0, 3), (3, 0, 1, 2)])
@pytest.mark.parametrize("limit", [64, 0])
def test_a_column_of_digits(order: tuple[int, ...], limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes past the last one have no part; with beams nothing is lost as long as they hold everything."""
    monkeypatch.setattr(conditional, "ALL", limit)
    monkeypatch.setattr(conditional, "MASS", 1.0)
    joint, rows = random_joint(), masked_rows(SHAPE, 40)
    completed = completions([JointRuntime(joint, order)], rows, [1, 2], 10)
    for row, mine in zip(rows, completed.dense(10), strict=True):
        expected = posterior(joint, row, [1, 2])[:10]
        np.testing.assert_allclose(mine, expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("positions", [[1], [1, 2]])
def test_of_many_codes_the_likeliest(positions: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2, 12, 5, 3)
    monkeypatch.setattr(conditional, "ALL", 4)
    monkeypatch.setattr(conditional, "MOST", 6)
    runtime, rows = JointRuntime(random_joint(shape)), masked_rows(shape, 30)
    count = int(np.prod([shape[position] for position in positions]))
    whole = np.array([posterior(runtime.joint, row, positions) for row in rows])
    rarest = whole.argmin(axis=1)
    some = completions([runtime], rows, positions, count)
    also = completions([runtime], rows, positions, count, also=rarest)
    assert np.diff(some.starts).max() == 6
    assert np.diff(also.starts).max() == 7
    assert (some.kept_share < 1).any()
    for completed in (some, also):
        dense = completed.dense(count)
        likeliest = np.where(dense > 0, whole, 0)
        np.testing.assert_allclose(dense, likeliest / likeliest.sum(axis=1, keepdims=True), atol=1e-9)
    assert (also.of(rarest) > 0).all()
    again = completions([runtime], rows, positions, count)
    np.testing.assert_array_equal(again.codes, some.codes)


def test_codes_are_chosen_by_what_comes_after_their_leading_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 codes that are equally likely before, there is room for the 8 whose leading digit the evidence names."""
    monkeypatch.setattr(conditional, "ALL", 4)
    monkeypatch.setattr(conditional, "MOST", 8)
    monkeypatch.setattr(conditional, "MASS", 1.0)
    joint = np.full((8, 8, 8), 1e-4)
    joint[range(8), :, range(8)] = 1.0  # the last tells the first
    rows = np.array([[8, 8, last] for last in range(8)])
    completed = completions([JointRuntime(joint)], rows, [0, 1], 64)
    np.testing.assert_array_equal(completed.codes, np.arange(64))
    np.testing.assert_array_equal(completed.rows, np.repeat(np.arange(8), 8))


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, rows = JointRuntime(random_joint()), masked_rows(SHAPE, 23)
    whole = completions([runtime], rows, [2], 4)
    monkeypatch.setattr(conditional, "PARTICLES", 5)
    pieces = completions([runtime], rows, [2], 4)
    np.testing.assert_array_equal(pieces.starts, whole.starts)
    np.testing.assert_allclose(pieces.probabilities, whole.probabilities)
    assert len(completions([runtime], rows[:0], [2], 4)) == 0


def test_entries_by_probability() -> None:
    completed = Completions(np.array([0, 3, 4]), np.array([0, 2, 5, 1]), np.array([0.25, 0.5, 0.25, 1.0]), np.ones(2))
    shares = np.array([[0.0, 0.0], [0.24, 0.5], [0.26, 0.7], [0.74, 0.9], [0.76, 0.999], [1.0, 1.0]])
    chosen = [completed.codes[completed.at(share)].tolist() for share in shares]
    assert chosen == [[0, 1], [0, 1], [2, 1], [2, 1], [5, 1], [5, 1]]
