"""The registry of column model kinds, extensible by an entry of :data:`KINDS`: docs/extending.md."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countless.arrays import Weights
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.columns.runtime import Runtime
from countless.errors import ModelFileError, OptionError
from countless.spec import RESMADE, ModelSpec

if TYPE_CHECKING:
    from countless.models.network import ColumnsNetwork


@dataclass(frozen=True)
class Kind:
    """A kind of model: its network for training, and its runtime for answering.

    ``network`` is ``module:Class``, imported only when a model is trained, since it needs PyTorch: a
    :class:`~countless.models.network.ColumnsNetwork` made from a spec. ``runtime`` makes a
    :class:`.Runtime` from a spec, the network's arrays, and the index of one of its orders.
    """

    network: str
    runtime: Callable[[ModelSpec, Mapping[str, Weights], int], Runtime[Any]]

    def make(self) -> Callable[[ModelSpec], ColumnsNetwork]:
        """The network's class."""
        module, _, name = self.network.partition(":")
        make: Callable[[ModelSpec], ColumnsNetwork] = getattr(importlib.import_module(module), name)
        return make


def require_kind(name: str) -> None:
    """Raise an error if no kind of model is called ``name``."""
    if name not in KINDS:
        raise OptionError(
            f"{{kind}} must be {' or '.join(KINDS)}, or that of a plugin in COUNTLESS_PLUGINS, not {name!r}"
        )


KINDS = {RESMADE: Kind("countless.models.resmade:ResMADE", ResMadeRuntime)}


def runtimes(spec: ModelSpec, arrays: Mapping[str, Weights]) -> tuple[Runtime[Any], ...]:
    """One runtime for each order of the model."""
    if spec.kind not in KINDS:
        raise ModelFileError(
            f"unknown kind of model {spec.kind!r}: upgrade Countless, or name the module that brings it in "
            "COUNTLESS_PLUGINS"
        )
    return tuple(KINDS[spec.kind].runtime(spec, arrays, order) for order in range(len(spec.orders)))
