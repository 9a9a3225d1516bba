"""Type aliases for the NumPy arrays that packages pass to each other, and the types in which models are stored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Weights = NDArray[np.float32]

DTYPES = ("int8", "float16", "float32")  # in which a model may be stored; it is always evaluated in float32
