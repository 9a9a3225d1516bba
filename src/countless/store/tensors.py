"""Storage formats of network weights: encoding to a file and decoding to float32.

``float32`` stores weights as they are, ``float16`` rounds them. In ``float16`` the *lookups* take a byte for each
number: embeddings of which single rows are added to other vectors and never multiplied, so that a relative error of a
percent is lost among them. They are the largest arrays of a text network. Each of their rows has a scale of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import Weights
from countless.errors import ModelFileError
from countless.options import DTYPES

FLOAT16, FLOAT32 = "float16", "float32"
SCALE = ".scale"  # what the name of the scales adds to that of the array
LARGEST = 127


class StoredTensors(Mapping[str, Weights]):
    """The weights of a network by name. They are held as they are stored; reading one decodes it, and keeps nothing.

    >>> tensors = StoredTensors.encoded({"grams": np.array([[0.5, -1.0], [0.0, 0.0]])}, "float16", lookups=["grams"])
    >>> tensors.stored["grams"].tolist(), tensors["grams"].round(2).tolist()
    ([[64, -127], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """

    def __init__(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.stored = stored

    @classmethod
    def encoded(cls, weights: Mapping[str, NDArray[Any]], dtype: str, lookups: Collection[str] = ()) -> StoredTensors:
        """``weights`` stored as ``dtype``, one of DTYPES."""
        stored: dict[str, NDArray[Any]] = {}
        for name, array in weights.items():
            if dtype == FLOAT16 and name in lookups:
                stored[name], stored[name + SCALE] = _to_bytes(array)
            else:
                stored[name] = array.astype(dtype)
        return cls(stored)

    @property
    def dtype(self) -> str:
        """The one of DTYPES in which the weights are stored."""
        return FLOAT16 if any(array.dtype == np.float16 for array in self.stored.values()) else FLOAT32

    @property
    def size(self) -> int:
        """How many numbers the weights are."""
        return sum(self.stored[name].size for name in self)

    def __getitem__(self, name: str) -> Weights:
        array = self.stored[name]
        if array.dtype == np.int8 and name + SCALE in self.stored:
            scale = self.stored[name + SCALE].astype(np.float32)
            if scale.shape != (*array.shape[:-1], 1):
                raise ModelFileError(
                    f"the model file is damaged: the scales of {name!r} do not fit it; fit the model again"
                )
            return array.astype(np.float32) * scale
        if array.dtype not in DTYPES:
            raise ModelFileError(
                f"the model file is damaged: array {name!r} is of type {array.dtype}; fit the model again"
            )
        return array.astype(np.float32)

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.stored if not self._is_scale(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _is_scale(self, name: str) -> bool:
        return name.endswith(SCALE) and name.removesuffix(SCALE) in self.stored


def _to_bytes(array: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """The numbers of each row in steps of the row's scale, and the scales."""
    array = array.astype(np.float32)
    largest = np.abs(array).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.maximum(largest / LARGEST, np.finfo(np.float16).smallest_subnormal).astype(np.float16)
    steps = np.rint(array / scale.astype(np.float32))
    return np.clip(steps, -LARGEST, LARGEST).astype(np.int8), scale
