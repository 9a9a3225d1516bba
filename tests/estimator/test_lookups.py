"""Embeddings in bytes: small, and as good as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from countless.errors import ModelFileError
from countless.estimator.lookups import packed, stored_like, unpacked


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(-3, 3, size=(2, 50, 1))
    return {
        "grams": (scales * rng.standard_normal((2, 50, 16))).astype(np.float32),
        "context.embedding": rng.standard_normal((30, 8)).astype(np.float32),
        "bias": rng.standard_normal(7).astype(np.float32),
    }


def test_a_row_is_off_by_less_than_a_hundredth_of_its_largest_number() -> None:
    before = arrays()
    stored = packed(before)
    assert stored["grams"].dtype == stored["context.embedding"].dtype == np.int8
    assert stored["bias"] is before["bias"]
    after = unpacked(stored)
    assert set(after) == set(before)
    for name in ("grams", "context.embedding"):
        largest = np.abs(before[name]).max(axis=-1, keepdims=True)
        assert np.all(np.abs(after[name] - before[name]) < 0.01 * largest)


def test_rows_of_nothing_and_tables_of_no_rows() -> None:
    for shape in ((2, 3, 4), (0, 5, 4)):
        found = unpacked(packed({"grams": np.zeros(shape, dtype=np.float32)}))["grams"]
        assert found.shape == shape
        assert not found.any()


def test_arrays_are_stored_as_they_were() -> None:
    for before in (packed(arrays()), arrays(), {name: array.astype("float16") for name, array in arrays().items()}):
        after = stored_like(arrays(), before)
        assert {name: array.dtype for name, array in after.items()} == {
            name: array.dtype for name, array in before.items()
        }


def test_scales_that_do_not_fit() -> None:
    stored = packed(arrays())
    stored["grams.scale"] = stored["grams.scale"][:, :-1]
    with pytest.raises(ModelFileError, match="the scales of 'grams' do not fit"):
        unpacked(stored)
