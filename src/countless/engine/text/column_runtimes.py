"""Runtimes of text columns, which share the arrays of one network."""

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
    """A runtime for each column. The shared arrays are in memory once."""
    weights = checked(arrays, shared_shapes(spec))
    return tuple(
        TextRuntime(spec.column(index), weights_of_column(spec, weights, index)) for index in range(len(spec.lengths))
    )


def shared_shapes(spec: SharedTextSpec) -> dict[str, tuple[int, ...]]:
    """The name and shape of every array of the network."""
    columns = [shapes(spec.column(index)) for index in range(len(spec.lengths))]
    shape_of = dict(columns[0])
    shape_of["embedding"] = (len(spec.union), spec.width)
    for name in OF_COLUMNS:
        if name in shape_of:
            shape_of[name] = (sum(column[name][0] for column in columns), *shape_of[name][1:])
    return shape_of


def weights_of_column(spec: SharedTextSpec, weights: dict[str, Weights], index: int) -> dict[str, Weights]:
    """The arrays of one column, for its runtime."""
    columns = [shapes(spec.column(column)) for column in range(len(spec.lengths))]
    column_weights = dict(weights)
    column_weights["embedding"] = weights["embedding"][list(spec.column(index).hash_ids)]
    for name in OF_COLUMNS:
        if name in weights:
            edges = np.cumsum([column[name][0] for column in columns])
            column_weights[name] = np.split(weights[name], edges[:-1])[index]
    return column_weights
