"""The NumPy runtime against the torch network that defines it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.columns.runtime import softmax
from countless.errors import ModelFileError
from countless.models.resmade import ResMADE
from countless.spec import ModelSpec

SPECS = [
    ModelSpec((3, 2, 7, 4), hidden=16, blocks=2, embedding=5),
    ModelSpec((3, 2, 7, 4), hidden=16, blocks=1, embedding=5, orders=((2, 0, 3, 1),)),
    ModelSpec((3, 2, 7, 4, 2, 2), hidden=3, blocks=2, embedding=4),  # fewer units than positions
    ModelSpec((3, 2, 7, 4), hidden=16, blocks=1, embedding=5, orders=((2, 0, 3, 1),), units=(9, 0, 7)),
    ModelSpec((5,), hidden=4, blocks=1, embedding=2),
    ModelSpec((1, 6), hidden=8, blocks=0, embedding=3),
]
SEVERAL = ModelSpec((3, 2, 7, 4), hidden=16, blocks=1, embedding=5, orders=((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)))
EACH_ORDER = [(spec, 0) for spec in SPECS] + [(SEVERAL, order) for order in range(len(SEVERAL.orders))]
each_order = pytest.mark.parametrize(("spec", "order"), EACH_ORDER)


def network(spec: ModelSpec, seed: int = 0) -> ResMADE:
    torch.manual_seed(seed)
    model = ResMADE(spec)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def random_codes(spec: ModelSpec, rows: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(size + 1, size=rows) for size in spec.sizes], axis=1)  # MASK included


@each_order
def test_the_plain_pass_is_the_networks(spec: ModelSpec, order: int) -> None:
    model = network(spec)
    runtime = ResMadeRuntime(spec, model.arrays(), order)
    codes = random_codes(spec, 50)
    with torch.no_grad():
        features = model.hidden(torch.from_numpy(codes), order)
        for position in range(len(spec.sizes)):
            expected = model.logits(features, position).numpy()
            np.testing.assert_allclose(runtime.conditional(codes, position), expected, rtol=1e-4, atol=1e-5)


@each_order
def test_walking_equals_the_plain_pass(spec: ModelSpec, order: int) -> None:
    """Any subset of positions may be visited; those jumped over are MASK."""
    runtime = ResMadeRuntime(spec, network(spec).arrays(), order)
    rng = np.random.default_rng(1)
    for _ in range(20):
        visited = [position for position in runtime.order if rng.random() < 0.6]
        codes = np.array([spec.sizes])
        state = runtime.start()
        for position in visited:
            np.testing.assert_allclose(
                runtime.logits(state, position), runtime.conditional(codes, position), rtol=1e-4, atol=1e-5
            )
            parents = rng.integers(len(codes), size=6)
            symbols = rng.integers(spec.sizes[position] + 1, size=6)
            state = runtime.advance(state, parents, position, symbols)
            codes = codes[parents]
            codes[:, position] = symbols


@each_order
def test_paths_that_are_followed_equal_the_plain_pass(spec: ModelSpec, order: int) -> None:
    runtime = ResMadeRuntime(spec, network(spec).arrays(), order)
    rng = np.random.default_rng(2)
    codes = np.tile(np.array(spec.sizes), (5, 1))
    first = runtime.order[0]
    state = runtime.advance(runtime.start(), np.zeros(5, dtype=np.int64), first, codes[:, first])
    for position in runtime.order:
        if rng.random() < 0.3:
            continue
        plain = runtime.conditional(codes, position)
        np.testing.assert_allclose(runtime.logits(state, position), plain, rtol=1e-4, atol=1e-5)
        codes[:, position] = rng.integers(spec.sizes[position] + 1, size=5)
        state = runtime.follow(state, position, codes[:, position])


def test_the_first_factor_is_each_orders_own() -> None:
    """What is cached for the first position of one order is not what another order starts from."""
    model = network(SEVERAL)
    for order in range(len(SEVERAL.orders)):
        runtime = ResMadeRuntime(SEVERAL, model.arrays(), order)
        first = runtime.order[0]
        with torch.no_grad():
            features = model.hidden(torch.tensor([SEVERAL.sizes]), order)
            expected = model.logits(features, first).numpy()
        np.testing.assert_allclose(runtime.logits(runtime.start(), first), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_probabilities_sum_to_one(spec: ModelSpec) -> None:
    runtime = ResMadeRuntime(spec, network(spec).arrays())
    for position in range(len(spec.sizes)):
        sums = softmax(runtime.conditional(random_codes(spec, 9), position)).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0, rtol=1e-12)


def test_starting_does_not_share_what_walking_changes() -> None:
    runtime = ResMadeRuntime(SPECS[0], network(SPECS[0]).arrays())
    before = runtime.logits(runtime.start(), 2).copy()
    runtime.advance(runtime.start(), np.array([0, 0]), 0, np.array([1, 2]))
    np.testing.assert_array_equal(runtime.logits(runtime.start(), 2), before)


def damaged(change: str) -> dict[str, Any]:
    arrays: dict[str, Any] = dict(network(SPECS[0]).arrays())
    if change == "missing":
        del arrays["out.bias"]
    elif change == "shape":
        arrays["first.weight"] = arrays["first.weight"][:, :-1]
    else:
        arrays["bias"] = arrays["bias"] * np.nan
    return arrays


@pytest.mark.parametrize(
    ("change", "phrase"), [("missing", "is missing"), ("shape", "has shape"), ("nan", "not finite")]
)
def test_damaged_arrays(change: str, phrase: str) -> None:
    with pytest.raises(ModelFileError, match=phrase):
        ResMadeRuntime(SPECS[0], damaged(change))


@pytest.mark.parametrize("name", ["first.signal", "out.signal"])
def test_several_orders_without_their_signals(name: str) -> None:
    arrays: dict[str, Any] = dict(network(SEVERAL).arrays())
    del arrays[name]
    with pytest.raises(ModelFileError, match="is missing"):
        ResMadeRuntime(SEVERAL, arrays)
