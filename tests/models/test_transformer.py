"""The Transformer is the model that the engine evaluates, and reads only what comes before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from countless.arrays import FloatArray
from countless.engine.columns import kernel
from countless.engine.text.column_runtimes import runtimes_of, shared_shapes, weights_of_column
from countless.engine.text.kernel import _arrays
from countless.engine.text.runtime import shapes
from countless.models.transformer import Transformer, gram_buckets
from countless.spec import SharedTextSpec, TextSpec

SPECS = [
    SharedTextSpec.of([("abcde", 12)], width=8, blocks=2, heads=2, inner=12, buckets=31),
    SharedTextSpec.of([("abc", 9)], width=6, blocks=1, heads=3, inner=5, grams=(), context=(4, 2), context_width=5),
    SharedTextSpec.of([("abcdefghijklmnopqrst", 15)], width=16, blocks=3, heads=1, inner=8, grams=(2,), buckets=64),
    SharedTextSpec.of([("abc", 8), ("bxy", 15), ("", 5)], width=8, heads=2, inner=12, buckets=31),
    SharedTextSpec.of([("ac", 10), ("bc", 7)], width=16, inner=32, grams=(3, 5), buckets=16, context=(3, 2)),
]
COLUMNS = [(spec, column) for spec in SPECS for column in range(len(spec.lengths))]
EVERY_COLUMN = pytest.mark.parametrize(("spec", "column"), COLUMNS)


def network(spec: SharedTextSpec, seed: int = 0) -> Transformer:
    """A network whose every weight, also those that start at 0 or 1, is arbitrary."""
    torch.manual_seed(seed)
    model = Transformer(spec)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return model


def strings(spec: TextSpec, count: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and positions of strings that begin after a gap, with another one somewhere inside."""
    size = spec.length - 2
    tokens = rng.integers(spec.symbols, size=(count, size))
    steps = np.ones((count, size), dtype=np.int64)
    tokens[:, 0], steps[:, 0] = spec.mask, rng.integers(2, size=count)
    places = rng.integers(1, size, size=count)
    tokens[np.arange(count), places] = spec.mask
    steps[np.arange(count), places] = 2
    return torch.from_numpy(tokens), torch.from_numpy(np.cumsum(steps, axis=1))


def rows(spec: SharedTextSpec, count: int, rng: np.random.Generator) -> torch.Tensor | None:
    """A symbol or MASK for every position of each row; None if the model takes no context."""
    sizes = np.array(spec.context) + 1
    return torch.from_numpy(rng.integers(sizes, size=(count, len(sizes)))) if spec.context else None


def chances(
    model: Transformer, tokens: Any, positions: Any, context: torch.Tensor | None = None, column: int = 0
) -> FloatArray:
    with torch.no_grad():
        shift = None if context is None else model.shift(context)[:, column]
        probs: FloatArray = model(tokens, positions, shift, column).double().softmax(-1).numpy()
    return probs


@EVERY_COLUMN
@pytest.mark.parametrize("compiled", [False, True])
def test_the_engine_has_the_same_probabilities(
    spec: SharedTextSpec, column: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setenv(kernel.SWITCH_OFF, "1")
    model, rng = network(spec), np.random.default_rng(1)
    runtime = runtimes_of(spec, model.arrays())[column]
    assert runtime.compiled == compiled
    tokens, positions = strings(runtime.spec, 6, rng)
    contexts = rows(spec, 6, rng)
    expected = chances(model, tokens, positions, contexts, column)
    for index, (string, places) in enumerate(zip(tokens.tolist(), positions.tolist(), strict=True)):
        tree = runtime.tree(None if contexts is None else contexts[index : index + 1].numpy())
        node, following = places[0], [tree.roots[places[0]]]
        for token, place in zip(string[1:], places[1:], strict=True):
            masked = token == runtime.spec.mask
            following.append((tree.masked([node], [place]) if masked else tree.extend([node], [token]))[0])
            node = tree.size - 1
        np.testing.assert_allclose(np.stack(following), expected[index], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("spec", SPECS)
def test_the_weights_are_those_the_engine_expects(spec: SharedTextSpec) -> None:
    arrays = Transformer(spec).arrays()
    assert {name: array.shape for name, array in arrays.items()} == shared_shapes(spec)
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}


def test_one_column_has_the_arrays_that_its_runtime_reads() -> None:
    for spec in SPECS[:3]:
        assert shared_shapes(spec) == shapes(spec.column(0))


def test_columns_share_one_copy_of_their_ngrams() -> None:
    spec, arrays = SPECS[4], network(SPECS[4]).arrays()
    compiled = [_arrays(spec.column(index), weights_of_column(spec, arrays, index)) for index in range(2)]
    assert np.shares_memory(compiled[0][2], compiled[1][2])


def test_the_same_string_of_two_columns_has_the_same_ngrams_and_other_chances() -> None:
    spec = SPECS[4]
    model, (one, two) = network(spec), (spec.column(0), spec.column(1))
    tokens = [torch.tensor([[column.mask, 1, 1]]) for column in (one, two)]  # c is symbol 1 of both
    known = [torch.tensor(column.hash_ids)[own] for column, own in zip((one, two), tokens, strict=True)]
    assert torch.equal(*known)
    assert all(torch.equal(*pair) for pair in zip(*(gram_buckets(each, spec) for each in known), strict=True))
    positions = torch.arange(3)[None]
    assert not np.allclose(chances(model, tokens[0], positions), chances(model, tokens[1], positions, column=1))


def test_the_weights_are_copies() -> None:
    model = network(SPECS[0])
    before = model.arrays()
    with torch.no_grad():
        model.bias.add_(1.0)
    assert not np.array_equal(before["bias"], model.arrays()["bias"])


@EVERY_COLUMN
def test_what_comes_later_changes_nothing_before(spec: SharedTextSpec, column: int) -> None:
    model, rng, own = network(spec), np.random.default_rng(2), spec.column(column)
    tokens, positions = strings(own, 4, rng)
    before = chances(model, tokens, positions, column=column)
    for index in range(1, tokens.shape[1]):
        changed = tokens.clone()
        changed[:, index] = (changed[:, index] + 1) % own.symbols
        after = chances(model, changed, positions, column=column)
        np.testing.assert_allclose(after[:, :index], before[:, :index], rtol=1e-5)
        assert (np.abs(after[:, index] - before[:, index]).max(axis=1) > 1e-6).all()


def test_positions_and_context_tell() -> None:
    spec = SPECS[1]
    model, rng = network(spec), np.random.default_rng(3)
    tokens, positions = strings(spec.column(0), 2, rng)
    one, two = torch.tensor([[0, 1], [3, 2]]), torch.tensor([[1, 1], [2, 2]])
    assert not np.allclose(chances(model, tokens, positions), chances(model, tokens, positions.clamp(min=1)))
    assert not np.allclose(chances(model, tokens, positions, one), chances(model, tokens, positions, two))
    nothing = torch.tensor([spec.context, spec.context])
    np.testing.assert_allclose(chances(model, tokens, positions, nothing), chances(model, tokens, positions), rtol=1e-5)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.sets(st.integers(2, 6), max_size=3),
    st.integers(1, 1 << 14),
)
@settings(deadline=None)
def test_the_bucket_of_an_ngram_is_as_defined(string: list[int], lengths: set[int], buckets: int) -> None:
    spec = SharedTextSpec.of([("abcdef", 20)], width=4, heads=1, grams=tuple(sorted(lengths)), buckets=buckets)
    found = gram_buckets(torch.tensor([string, [0] * len(string)]), spec)
    assert len(found) == len(spec.grams)
    for length, numbers in zip(spec.grams, found, strict=True):
        expected = []
        for index in range(len(string)):
            value = 2166136261
            for back in range(length):
                token = string[index - back] if back <= index else spec.column(0).mask
                value = ((value ^ token) * 16777619) % 2**32
            expected.append((value >> 7) % buckets)
        assert numbers[0].tolist() == expected
