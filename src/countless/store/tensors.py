"""Storage formats of network weights: encoding to a file and decoding to float32.

``int8`` stores a matrix as whole numbers of steps. Each row has a step of its own, its *scale*. Vectors, such as
biases, are float16. Few steps are enough, and a compressed file has few bits for each: about six for 63 steps in either
direction, four for 15. The residual blocks of a columns' network bear the *coarse* steps (docs/accuracy.md).

``float32`` stores weights as they are, ``float16`` rounds them. In ``float16`` the *lookups* are stored as in ``int8``:
embeddings of which single rows are added to other vectors and never multiplied. They are the largest arrays of a text
network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import DTYPES, Weights
from countless.errors import ModelFileError

INT8, FLOAT16, FLOAT32 = DTYPES
SCALE = ".scale"  # what the name of the scales adds to that of the array
LARGEST, LARGEST_COARSE = 63, 15  # steps from 0 to the largest number of a row


class StoredTensors(Mapping[str, Weights]):
    """The weights of a network by name. They are held as they are stored; reading one decodes it, and keeps nothing.

    >>> tensors = StoredTensors.encoded({"grams": np.array([[0.5, -1.0], [0.0, 0.0]])}, "float16", lookups=["grams"])
    >>> tensors.stored["grams"].tolist(), tensors["grams"].round(1).tolist()
    ([[32, -63], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """

    def __init__(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.stored = stored

    @classmethod
    def encoded(
        cls,
        weights: Mapping[str, NDArray[Any]],
        dtype: str,
        lookups: Collection[str] = (),
        coarse: Collection[str] = (),
    ) -> StoredTensors:
        """``weights`` stored as ``dtype``, one of DTYPES."""
        stored: dict[str, NDArray[Any]] = {}
        for name, array in weights.items():
            if (dtype == INT8 and array.ndim > 1) or (dtype == FLOAT16 and name in lookups):
                stored[name], stored[name + SCALE] = _to_steps(array, LARGEST_COARSE if name in coarse else LARGEST)
            else:
                stored[name] = array.astype(FLOAT16 if dtype == INT8 else dtype)
        return cls(stored)

    @property
    def dtype(self) -> str:
        """The one of DTYPES in which the weights are stored."""
        types = {str(self.stored[name].dtype) for name in self if self.stored[name].ndim > 1}
        return next((dtype for dtype in (FLOAT32, FLOAT16) if dtype in types), INT8)

    @property
    def size(self) -> int:
        """How many numbers the weights are."""
        return sum(self.stored[name].size for name in self)

    def __getitem__(self, name: str) -> Weights:
        array = self.stored[name]
        if array.dtype == np.int8 and name + SCALE in self.stored:
            scale = self.stored[name + SCALE]
            if scale.dtype != np.float16 or scale.shape != (*array.shape[:-1], 1):
                raise ModelFileError(
                    f"the model file is damaged: the scales of {name!r} do not fit it; fit the model again"
                )
            if not np.all((scale > 0) & np.isfinite(scale)):
                raise ModelFileError(
                    f"the model file is damaged: the scales of {name!r} are not finite and above 0; fit the model again"
                )
            return array.astype(np.float32) * scale.astype(np.float32)
        if array.dtype not in (FLOAT16, FLOAT32):
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


def _to_steps(array: NDArray[Any], most: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """The numbers of each row in steps of the row's scale, at most ``most``, and the scales."""
    array = array.astype(np.float32)
    largest = np.abs(array).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.maximum(largest / most, np.finfo(np.float16).smallest_subnormal).astype(np.float16)
    steps = np.rint(array / scale.astype(np.float32))
    return np.clip(steps, -most, most).astype(np.int8), scale
