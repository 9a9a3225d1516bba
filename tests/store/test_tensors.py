"""Weights as a file stores them: small, and as good as before."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from countless.arrays import DTYPES
from countless.errors import ModelFileError
from countless.spec import ModelSpec
from countless.store import StoredNetwork, StoredTensors

LOOKUPS = ("grams", "context.embedding")


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(-2, 3, size=(2, 50, 1))  # below, a scale is no normal float16
    return {
        "grams": (scales * rng.standard_normal((2, 50, 16))).astype(np.float32),
        "context.embedding": rng.standard_normal((30, 8)).astype(np.float32),
        "bias": rng.standard_normal(7).astype(np.float32),
    }


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_a_row_is_off_by_less_than_a_hundredth_of_its_largest_number(dtype: str) -> None:
    before = arrays()
    after = StoredTensors.encoded(before, dtype, LOOKUPS)
    assert {name: str(array.dtype) for name, array in after.stored.items()} == {
        "grams": "int8",
        "grams.scale": "float16",
        "context.embedding": "int8",
        "context.embedding.scale": "float16",
        "bias": "float16",
    }
    assert set(after) == set(before)
    for name in LOOKUPS:
        largest = np.abs(before[name]).max(axis=-1, keepdims=True)
        assert np.all(np.abs(after[name] - before[name]) < 0.01 * largest)


def test_blocks_are_stored_coarsely_and_weights_that_a_mask_blocks_take_no_room() -> None:
    square = np.tril(np.random.default_rng(0).standard_normal((200, 200))).astype(np.float32)
    spec = ModelSpec(sizes=(2, 2), blocks=1)
    weights = {"blocks.0.inner.weight": square, "out.weight": square}
    stored = StoredNetwork.encoded(spec, weights, "int8").weights
    inside, out = (stored.stored[name] for name in weights)
    assert (np.abs(inside).max(), np.abs(out).max()) == (15, 63)
    for name in stored:
        assert not np.triu(stored[name], 1).any()
        assert np.all(np.abs(stored[name] - square) < 0.04 * np.abs(square).max(axis=1, keepdims=True))
    dense = np.tril(np.ones((200, 200))).astype(bool)
    assert len(zlib.compress(inside.tobytes(), 9)) < 1.1 * len(zlib.compress(inside[dense].tobytes(), 9))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_are_read_in_float32_and_stored_again_alike(dtype: str) -> None:
    before = {**arrays(), "inside": arrays()["context.embedding"]}
    once = StoredTensors.encoded(before, dtype, ["grams"], ["inside"])
    again = StoredTensors.encoded(once, once.dtype, ["grams"], ["inside"])
    assert (once.dtype, once.size, len(once)) == (dtype, sum(array.size for array in before.values()), 4)
    for name in once:
        assert once[name].dtype == np.float32
        assert np.array_equal(once.stored[name], again.stored[name])


def test_in_float32_nothing_is_rounded() -> None:
    tensors = StoredTensors.encoded(arrays(), "float32", LOOKUPS)
    assert all(np.array_equal(tensors[name], array) for name, array in arrays().items())


def test_rows_of_nothing_and_tables_of_no_rows() -> None:
    for shape in ((2, 3, 4), (0, 5, 4)):
        grams = StoredTensors.encoded({"grams": np.zeros(shape, dtype=np.float32)}, "float16", LOOKUPS)["grams"]
        assert grams.shape == shape
        assert not grams.any()


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_scales_that_do_not_fit(dtype: str) -> None:
    stored = StoredTensors.encoded(arrays(), dtype, LOOKUPS).stored
    right = stored["grams.scale"]
    for wrong in (right[:, :-1], right[..., 0], right.astype(np.float32), np.zeros(0, dtype=np.float16)):
        with pytest.raises(ModelFileError, match="the scales of 'grams' do not fit"):
            StoredTensors({**stored, "grams.scale": wrong})["grams"]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_scales_that_are_no_sizes(value: float) -> None:
    stored = StoredTensors.encoded(arrays(), "int8").stored
    wrong = stored["grams.scale"].copy()
    wrong[1, 7] = value
    with pytest.raises(ModelFileError, match="the scales of 'grams' are not finite and above 0"):
        StoredTensors({**stored, "grams.scale": wrong})["grams"]


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "bool"])
def test_a_type_that_no_weights_are_stored_in(dtype: str) -> None:
    with pytest.raises(ModelFileError, match=f"'bias' is of type {dtype}"):
        StoredTensors({"bias": np.zeros(3, dtype=dtype)})["bias"]
