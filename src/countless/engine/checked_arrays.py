"""Validation of arrays from a model file, which may be damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import Weights
from countless.errors import ModelFileError


def checked(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Weights]:
    """The arrays that ``shapes`` names, each of the shape it must have, and finite."""
    return {name: _checked(arrays, name, shape) for name, shape in shapes.items()}


def _checked(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> Weights:
    if name not in arrays:
        raise ModelFileError(f"the model file is damaged: array {name!r} is missing; fit the model again")
    array = np.ascontiguousarray(arrays[name], dtype=np.float32)
    if array.shape != shape:
        raise ModelFileError(
            f"the model file is damaged: array {name!r} has shape {array.shape}, not {shape}; fit the model again"
        )
    if not np.all(np.isfinite(array)):
        raise ModelFileError(
            f"the model file is damaged: array {name!r} holds values that are not finite; fit the model again"
        )
    return array
