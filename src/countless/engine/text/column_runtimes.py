"""Text runtimes per column that share the arrays of one network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.arrays import Weights
from countless.engine.checked_arrays import checked
from countless.engine.text.runtime import TextRuntime, shapes
from countless.spec import SharedTextSpec

OF_COLUMNS = ("positions", "bias", "context.out.weight", "context.direct.weight")  # each column has rows of its own


def runtimes_of(spec: SharedTextSpec, arrays: Mapping[str, NDArray[Any]]) -> tuple[TextRuntime, ...]:
    """A runtime for each column. What the columns share is held once."""
    weights = checked(arrays, shared_shapes(spec))
    return tuple(
        TextRuntime(spec.column(index), weights_of_column(spec, weights, index)) for index in range(len(spec.lengths))
    )


def shared_shapes(spec: SharedTextSpec) -> dict[str, tuple[int, ...]]:
    """The name and shape of every array of the network."""
    columns = [shapes(spec.column(index)) for index in range(len(spec.lengths))]
    found = dict(columns[0])
    found["embedding"] = (len(spec.union), spec.width)
    for name in OF_COLUMNS:
        if name in found:
            found[name] = (sum(column[name][0] for column in columns), *found[name][1:])
    return found


def weights_of_column(spec: SharedTextSpec, weights: dict[str, Weights], index: int) -> dict[str, Weights]:
    """The arrays of one column, as its runtime wants them."""
    columns = [shapes(spec.column(column)) for column in range(len(spec.lengths))]
    own = dict(weights)
    own["embedding"] = weights["embedding"][list(spec.column(index).hash_ids)]
    for name in OF_COLUMNS:
        if name in weights:
            edges = np.cumsum([column[name][0] for column in columns])
            own[name] = np.split(weights[name], edges[:-1])[index]
    return own
