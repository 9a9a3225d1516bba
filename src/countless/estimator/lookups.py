"""Embeddings that are only looked up, stored in a byte for each number: the largest arrays of a text model.

A row of an embedding is added to other vectors and never multiplied, so that a relative error of a percent is lost
among them. Each row has a scale of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.errors import ModelFileError

LOOKUPS = ("grams", "context.embedding")
SCALE = ".scale"  # what the name of the scales adds to that of the array
LARGEST = 127


def packed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a text model, its lookups in bytes.

    >>> found = packed({"grams": np.array([[0.5, -1.0], [0.0, 0.0]])})
    >>> found["grams"].tolist(), unpacked(found)["grams"].round(2).tolist()
    ([[64, -127], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """
    found = dict(arrays)
    for name in LOOKUPS:
        if name in arrays:
            array = arrays[name].astype(np.float32)
            largest = np.abs(array).max(axis=-1, keepdims=True, initial=0.0)
            scale = np.maximum(largest / LARGEST, np.finfo(np.float16).smallest_subnormal).astype(np.float16)
            steps = np.rint(array / scale.astype(np.float32))
            found[name], found[name + SCALE] = np.clip(steps, -LARGEST, LARGEST).astype(np.int8), scale
    return found


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays as they were before :func:`packed`, up to its rounding."""
    found = dict(arrays)
    for name in LOOKUPS:
        if name + SCALE in arrays and name in arrays:
            scale = found.pop(name + SCALE).astype(np.float32)
            if scale.shape != (*arrays[name].shape[:-1], 1):
                raise ModelFileError(
                    f"the model file is damaged: the scales of {name!r} do not fit it; fit the model again"
                )
            found[name] = arrays[name].astype(np.float32) * scale
    return found


def stored_like(arrays: Mapping[str, NDArray[Any]], before: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """``arrays`` in the form, and of the types, that those of the same names had ``before``."""
    form = packed(arrays) if any(name + SCALE in before for name in LOOKUPS) else arrays
    return {name: array.astype(before[name].dtype) for name, array in form.items()}
