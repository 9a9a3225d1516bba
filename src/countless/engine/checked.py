"""Arrays from a model file, which may be damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import Weights
from countless.errors import ModelFileError

DTYPES = (np.float16, np.float32, np.float64)


def checked(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Weights]:
    """The arrays as float32, each of the shape it must have, and finite."""
    for name, shape in shapes.items():
        if name not in arrays:
            raise ModelFileError(f"the model file is damaged: array {name!r} is missing; fit the model again")
        if arrays[name].shape != shape:
            raise ModelFileError(
                f"the model file is damaged: array {name!r} has shape {arrays[name].shape}, not {shape}; "
                "fit the model again"
            )
        if arrays[name].dtype not in DTYPES:
            raise ModelFileError(
                f"the model file is damaged: array {name!r} is of type {arrays[name].dtype}; fit the model again"
            )
    with np.errstate(over="ignore"):
        found = {name: np.ascontiguousarray(arrays[name], dtype=np.float32) for name in shapes}
    for name, array in found.items():
        if not np.all(np.isfinite(array)):
            raise ModelFileError(
                f"the model file is damaged: array {name!r} holds values that are not finite; fit the model again"
            )
    return found
