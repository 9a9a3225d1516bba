"""Type aliases for the NumPy arrays that packages pass to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Weights = NDArray[np.float32]
